import { gatewayLines } from '../sharing/gateways-view.ts'
import type { Report } from './report.ts'
import type { Latency, StatsView } from './stats.ts'

/** A report as text: arrivals and outcomes by tenant, latencies, engines, ladder, cost, fairness, refusals. */
export function reportTable(report: Report): string {
  const { engine, prediction, ladder, fairness, cost } = report
  const rows = [HEAD, rowOf('all tenants', report), ...tenantRows(report)]
  const percent = (ratio: number | undefined): string => (ratio === undefined ? '–' : `${(100 * ratio).toFixed(1)} %`)
  const lines = [`${report.scenario}, seed ${report.seed}: ${number(report.durationS)} s`, '', ...align(rows), '']
  // A live server tells its clients nothing about engines and predictions.
  if (engine.steps === 0) return [...lines, ...refusalLine(report)].join('\n')
  lines.push(
    `engines   busy ${percent(engine.busy)} of the time at ${percent(engine.utilisation)} of full work, step ${number(engine.stepMs)} ms, ${engine.preemptions} preemptions, prefix hits ${percent(engine.prefixHitRatio)}`,
    `promises  ${percent(prediction.coverage)} of the admitted in time; ${prediction.falseReject} of ${prediction.falseReject + prediction.rightReject} refusals as too late were wrong`,
    `ladder    ${ladder.changes} rung changes; ${
      Object.entries(ladder.timeOnRung)
        .map(([rung, s]) => `${rung} ${Math.round(s)} s`)
        .join(', ') || 'no tenant was degraded'
    }`,
    `cost      $${cost.perHour.toFixed(2)} an hour, $${number(cost.perMillionTokens)} a million tokens`,
  )
  if (fairness.jain !== undefined) {
    lines.push(
      `fairness  Jain ${fairness.jain.toFixed(4)} over ${fairness.backloggedTenants} backlogged tenants, shares within ${percent(fairness.shareErrorMax)}`,
    )
  }
  lines.push(...returnLines(report))
  lines.push(...screenLines(report))
  lines.push(...scalingLines(report))
  if (report.gateways !== undefined) lines.push(...gatewayLines(report.gateways))
  return [...lines, ...refusalLine(report), ...costLines(report)].join('\n')
}

/** Whether those who were told when to come back found their room, where any came. */
function returnLines({ returns: { kept, broken, given, none } }: Report): string[] {
  if (kept + broken === 0) return []
  const shown = `${kept} of ${kept + broken} who came on a return slot were admitted`
  return [`returns   ${shown}; ${given} slots were given, ${none} refusals had none`]
}

/** What the judges said, where there are any. */
function screenLines({ screens }: Report): string[] {
  const { passed, partial, blocked } = screens.verdicts
  if (passed + partial + blocked === 0) return []
  const asked = Object.entries(screens.guard).filter(([, count]) => count > 0)
  const guard = asked.length === 0 ? '' : `; guard: ${asked.map(([answer, count]) => `${answer} ${count}`).join(', ')}`
  const check = `check p50 ${number(screens.checkMs.p50)} ms, p95 ${number(screens.checkMs.p95)} ms`
  return [`screens   passed ${passed}, partial ${partial}, blocked ${blocked}; ${check}${guard}`]
}

function scalingLines({ scaling = {} }: Report): string[] {
  return Object.entries(scaling).map(
    ([pool, { gpuHours, usd, orders, turns, replicasMin, replicasMax }]) =>
      `scaling   ${pool}: ${gpuHours.toFixed(2)} GPU-hours, $${usd.toFixed(2)}; ${replicasMin} to ${replicasMax} replicas in ${orders} orders, ${turns} changes of direction`,
  )
}

function refusalLine({ refusals }: Report): string[] {
  const codes = Object.entries(refusals)
  return codes.length === 0 ? [] : [`refused   ${codes.map(([code, count]) => `${code} ${count}`).join(', ')}`]
}

/** What the replicas' closed seconds cost whom, in dollars. */
function costLines({ cost, laws }: Report): string[] {
  const { statement } = cost
  if (statement.billUsd === 0) return []
  const usd = (value: number): string => (value === 0 ? '0' : value.toPrecision(3))
  const rows = Object.entries(statement.tenants)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .slice(0, TENANTS_MAX)
    .map(([id, tenant]) => [
      id,
      usd(tenant.usedUsd),
      `${(100 * tenant.share).toFixed(1)} %`,
      usd(tenant.idleUsd),
      usd(tenant.wasteUsd),
      usd(tenant.batchSavedUsd),
      usd(tenant.prefixSavedUsd),
    ])
  const { billUsd, idleUsd, wasteUsd, platformUsd, crashedUsd, lateUsd, closedSeconds } = statement
  const isExact = !laws.some(({ law }) => law === 'L15')
  return [
    '',
    ...align([['engine time, $', 'cost', 'share', 'idle', 'waste', 'batching saved', 'cache saved'], ...rows]),
    `bill      $${usd(billUsd)} for ${closedSeconds} replica-seconds, ${isExact ? 'each split to the nano-dollar (L15)' : 'NOT split exactly: L15 is broken'}; of it idle $${usd(idleUsd)}, waste $${usd(wasteUsd)}, platform $${usd(platformUsd)}, crashed $${usd(crashedUsd)}, late $${usd(lateUsd)}`,
  ]
}

/** Tenants listed: enough for a screen; --json has all of them. */
const TENANTS_MAX = 12

const HEAD = [
  '',
  'arrived',
  'done',
  'shed',
  'late',
  'degraded',
  'ttft p50',
  'p95',
  'itl p50',
  'p95',
  'e2e p95',
  'good/s',
]

function tenantRows(report: Report): string[][] {
  const tenants = Object.entries(report.tenants).sort(([a], [b]) => (a < b ? -1 : 1))
  const rows = tenants.slice(0, TENANTS_MAX).map(([id, stats]) => rowOf(id, stats))
  if (tenants.length > TENANTS_MAX) rows.push([`… ${tenants.length - TENANTS_MAX} more`])
  return rows
}

function rowOf(name: string, stats: StatsView): string[] {
  const { requests, latency, goodput } = stats
  const ms = (view: Latency, of: keyof Latency): string => number(view[of])
  return [
    name,
    String(requests.arrived),
    String(requests.completed),
    String(requests.shed),
    String(stats.late),
    String(stats.degraded),
    ms(latency.ttft, 'p50'),
    ms(latency.ttft, 'p95'),
    ms(latency.itl, 'p50'),
    ms(latency.itl, 'p95'),
    ms(latency.e2e, 'p95'),
    goodput.requestsPerS.toFixed(1),
  ]
}

function number(value: number | undefined): string {
  if (value === undefined) return '–'
  if (!Number.isFinite(value)) return '∞'
  return value >= 100 ? String(Math.round(value)) : value.toFixed(value >= 10 ? 1 : 2)
}

function align(rows: readonly string[][]): string[] {
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  '),
  )
}
