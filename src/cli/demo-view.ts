import { stripVTControlCharacters, styleText } from 'node:util'
import { DEMO_ADMIN_KEY } from '../config/demo.ts'
import type { DemoEnd, DemoPhase, DemoTenant, DemoView } from '../load/demo.ts'

/** The demo's view while it runs, and its summary afterwards, as text; the caller prints it. */

type Color = 'bold' | 'dim' | 'green' | 'yellow' | 'red' | 'cyan'
const paint = (color: Color, text: string): string => styleText(color, text, { stream: process.stdout })

const BAR = 20
/** Share of requests sent late above which the summary warns of a busy machine. */
const BUSY_RATIO = 0.02

/** The view for a terminal: several lines, repainted in place. */
export function demoScreen(view: DemoView, phases: readonly DemoPhase[]): string {
  const now = phases.map((phase) => {
    const label = phase.name === 'spike' ? 'spike: globex × 20' : phase.name
    return phase === view.phase ? paint('bold', `▶ ${label}`) : paint('dim', label)
  })
  const left = Math.max(0, Math.ceil((phases.at(-1)?.toS ?? 0) - view.atS))
  const head = ['tenant', 'arrived/s', 'done/s', 'shed/s', 'rung', 'first token p95, of the promise']
  const rows = view.tenants.map((tenant) => [
    tenant.id,
    rate(tenant.arrived, view),
    rate(tenant.completed, view),
    tenant.shed > 0 ? paint('yellow', rate(tenant.shed, view)) : rate(0, view),
    rungOf(tenant),
    promiseBar(tenant),
  ])
  return [
    `  ${now.join(paint('dim', '  →  '))}   ${paint('dim', `${left} s left`)}`,
    '',
    ...table(head, rows).map((line) => `  ${line}`),
    '',
  ].join('\n')
}

/** The view where lines cannot be repainted: one line. */
export function demoLine(view: DemoView): string {
  const tenants = view.tenants.map((tenant) => {
    const shed = tenant.shed > 0 ? `, shed ${rate(tenant.shed, view)}/s` : ''
    const rung = tenant.rung === undefined ? '' : `, ${rungOf(tenant)}`
    return `${tenant.id} ${rate(tenant.arrived, view)}/s${shed}${rung}, p95 ${ms(tenant.ttftP95)} of ${ms(tenant.sloTtftMs)}`
  })
  return `${String(Math.round(view.atS)).padStart(4)} s  ${view.phase.name.padEnd(8)}  ${tenants.join(' · ')}`
}

export function demoSummary(end: DemoEnd): string {
  const head = [
    '',
    'tenant',
    'arrived',
    'done',
    'degraded',
    'shed',
    'failed',
    'cancelled',
    'first token p95',
    'promise',
    '',
  ]
  const rows = end.phases.flatMap(({ phase, tenants }) =>
    tenants.map((tenant, i) => [
      i === 0 ? paint('bold', phase.name) : '',
      tenant.id,
      String(tenant.arrived),
      String(tenant.completed),
      String(tenant.degraded),
      String(tenant.shed),
      String(tenant.failed),
      String(tenant.cancelled),
      ms(tenant.ttftP95),
      ms(tenant.sloTtftMs),
      isKept(tenant) ? paint('green', 'kept') : paint('red', 'missed'),
    ]),
  )
  return [...table(head, rows), '', ...sentences(end)].join('\n')
}

/** The summary in sentences; a missed promise is reported too. */
function sentences({ phases, noisy, url, lagMs }: DemoEnd): string[] {
  const tenantsIn = (name: DemoPhase['name']): readonly DemoTenant[] =>
    phases.find(({ phase }) => phase.name === name)?.tenants ?? []
  const loud = tenantsIn('spike').find(({ id }) => id === noisy)
  const others = tenantsIn('spike').filter(({ id }) => id !== noisy)
  const lines = [paint('bold', 'What was seen')]
  if (loud !== undefined && loud.arrived > 0) {
    const degraded = percent(loud.degraded, loud.arrived)
    const shed = percent(loud.shed, loud.arrived)
    lines.push(
      `  ${noisy} sent twenty times as much. ${degraded} of its requests got degraded answers (mostly ${loud.rung ?? 'none'}), ${shed} were`,
      `  refused with a Retry-After. The p95 of the first token of the admitted requests was ${ms(loud.ttftP95)}.`,
    )
  }
  for (const tenant of others) {
    const refused = tenant.shed === 0 ? 'none refused' : `${tenant.shed} refused`
    const kept = isKept(tenant) ? 'kept its promise' : 'did NOT keep its promise'
    lines.push(
      `  ${tenant.id} ${kept}: p95 ${ms(tenant.ttftP95)} of ${ms(tenant.sloTtftMs)}, ${refused}, ${tenant.degraded} degraded.`,
    )
  }
  const after = tenantsIn('recovery').filter((tenant) => tenant.arrived > 0)
  if (after.length > 0) {
    const good = after.every((tenant) => isKept(tenant))
    lines.push(
      `  Afterwards ${good ? 'every tenant was' : 'not every tenant was'} served in time${good ? ' again' : ''}.`,
    )
  }
  if (lagMs.over20MsRatio > BUSY_RATIO) {
    const share = percent(lagMs.over20MsRatio, 1)
    lines.push(
      `  This machine was busy: ${share} of the requests were sent over 20 ms late, ${Math.round(lagMs.max)} ms at worst, which raises the times above.`,
    )
  }
  return [
    ...lines,
    '',
    paint('bold', 'Look deeper'),
    '  spillway simulate demo --report demo-report     the same in virtual time, with plots',
    '  spillway simulate noisy-neighbour               a larger platform, with expectations that are checked',
    '  spillway bench demo --duration 60               this load again, as a benchmark',
    `  curl ${url}/metrics -H 'authorization: Bearer ${DEMO_ADMIN_KEY}'   the metrics, while the platform runs`,
  ]
}

function promiseBar(tenant: DemoTenant): string {
  if (tenant.ttftP95 === undefined) return paint('dim', '–')
  const ratio = tenant.ttftP95 / tenant.sloTtftMs
  const filled = Math.min(BAR, Math.max(1, Math.round(BAR * ratio)))
  const color = ratio > 1 ? 'red' : ratio > 0.8 ? 'yellow' : 'green'
  const text = `${ms(tenant.ttftP95)} of ${ms(tenant.sloTtftMs)}`
  return `${paint(color, '█'.repeat(filled))}${paint('dim', '░'.repeat(BAR - filled))} ${text}`
}

const isKept = (tenant: DemoTenant): boolean => tenant.ttftP95 === undefined || tenant.ttftP95 <= tenant.sloTtftMs

function rungOf(tenant: DemoTenant): string {
  if (tenant.rung === undefined) return 'full'
  return `${tenant.rung} ${percent(tenant.degraded, Math.max(1, tenant.completed))}`
}

const rate = (count: number, { seconds, atS }: DemoView): string =>
  (count / Math.max(1, Math.min(seconds, atS))).toFixed(count === 0 ? 0 : 1)

const percent = (part: number, whole: number): string => `${Math.round((100 * part) / whole)} %`

function ms(value: number | undefined): string {
  if (value === undefined) return '–'
  return value >= 1_000 ? `${(value / 1_000).toFixed(1).replace(/\.0$/, '')} s` : `${Math.round(value)} ms`
}

/** Columns as wide as their visible text: colour codes have no width. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widthOf = (text: string): number => stripVTControlCharacters(text).length
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => widthOf(row[i] ?? ''))))
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => {
        const gap = ' '.repeat(Math.max(0, (widths[i] ?? 0) - widthOf(cell)))
        const isNumber = /^[\d.]+( %| s| ms)?$/.test(stripVTControlCharacters(cell))
        return isNumber ? gap + cell : cell + gap
      })
      .join('  ')
      .trimEnd()
  return [paint('dim', line(head)), ...rows.map(line)]
}
