import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Rng } from '../../src/base/rng.ts'
import { findGpuProfile } from '../../src/engine/gpu-profiles.ts'
import { drawTokens } from '../../src/sim/clients/draw.ts'
import { Stats, type StatsView } from '../../src/sim/report/stats.ts'
import { azureShape } from './kit/azure-shape.ts'
import { REPLICAS_PER_CELL } from './kit/cell-world.ts'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import { fleetFor, type Measured, type Wanted } from './kit/fleet-arithmetic.ts'
import { runRegions } from './kit/region-world.ts'
import { type Cell, RESULTS_FOLDER, type Result } from './kit/result.ts'

/** What would millions of requests a second take, and does the smallest form of it survive the loss of a region? */
const PROFILE = 'h100-llama-8b'
/** Bytes of one event of a stream: `curl -N` of the demo, 222 events of one token, 55,397 bytes, 2026-11-16. */
const BYTES_PER_PIECE = 250
/** One event of the audit: docs/operations/audit.md, `node bench/load/audit-cost.ts`. */
const BYTES_PER_AUDIT_EVENT = 620
/** `npx spillway simulate large-fleet` runs this many in one control loop. */
const REPLICAS_PER_CELL_MAX = 1_000

const REGIONS = 3
const CELLS_PER_REGION = 4
const USE_RATIO = 0.95
const RUN = { untilS: 50, lostS: { from: 25.5, to: 45 } }
/** An answer takes up to ten seconds: who came so long before the loss may be hit by it. */
const PARTS = { calm: { fromS: 5, toS: 15 }, lost: { fromS: 15.5, toS: 40 } } as const

interface Overhead {
  readonly streams: number
  readonly idleMb: Readonly<Record<string, number>>
  readonly rows: ReadonlyArray<{
    readonly metric: { readonly id: string }
    readonly cells: ReadonlyArray<{ readonly target: string; readonly value?: { readonly median: number } }>
  }>
}

const stored = (name: string): unknown => JSON.parse(readFileSync(join(RESULTS_FOLDER, `${name}.json`), 'utf8'))

/** Figures that were recorded, each with the file that it is read from. */
function readMeasured(): { measured: Measured; rows: Cell[][] } {
  const overhead = stored('gateway-overhead') as Overhead
  const gateway = (id: string): number => {
    const row = overhead.rows.find(({ metric }) => metric.id === id)
    const value = row?.cells.find(({ target }) => target === 'spillway')?.value?.median
    if (value === undefined) throw new Error(`gateway-overhead.json has no ${id}`)
    return value
  }
  const { perReplicaS, tokenMs, ttftMs } = lastInTime(stored('chunked-prefill') as Result)
  const rng = Rng.stream(1, 'lengths')
  const { prompt, output } = azureShape(1, 1).workload[0]!
  const lengthOf = (spec: typeof prompt): number => mean(Array.from({ length: 100_000 }, () => drawTokens(spec, rng)))
  const outputTokens = lengthOf(output)
  const measured: Measured = {
    perReplicaS,
    promptTokens: lengthOf(prompt),
    outputTokens,
    answerS: (ttftMs + outputTokens * tokenMs) / 1_000,
    usdPerReplicaHour: findGpuProfile(PROFILE)!.usdPerHour,
    requestCpuS: 1 / gateway('json-c64.requests-per-cpu-second'),
    pieceCpuS: gateway('sse-flood.cpu-us-per-chunk') / 1e6,
    bytesPerStream: ((gateway('sse-held.rss-mb') - overhead.idleMb['spillway']!) * 1e6) / overhead.streams,
    bytesPerPiece: BYTES_PER_PIECE,
    bytesPerAuditEvent: BYTES_PER_AUDIT_EVENT,
    replicasPerCell: REPLICAS_PER_CELL_MAX,
  }
  const live = 'bench/results/gateway-overhead.json'
  return {
    measured,
    rows: [
      [`requests a second of one replica (${PROFILE}) with every answer in time`, perReplicaS, 'chunked-prefill.json'],
      ['tokens of a prompt, mean', measured.promptTokens, 'Azure’s conversations, as kit/azure-shape.ts has them'],
      ['tokens of an answer, mean', outputTokens, 'the same'],
      ['seconds to a whole answer at that rate', measured.answerS, 'chunked-prefill.json, medians'],
      ['gateway: CPU ms of a request without its stream', measured.requestCpuS * 1_000, live],
      ['gateway: CPU µs of one event of a stream, busy', measured.pieceCpuS * 1e6, live],
      ['gateway: kB of an open stream', measured.bytesPerStream / 1_000, live],
      ['bytes of one event of a stream', BYTES_PER_PIECE, 'curl of the demo'],
      ['bytes of an event of the audit', BYTES_PER_AUDIT_EVENT, 'docs/operations/audit.md'],
      ['replicas of a cell', REPLICAS_PER_CELL_MAX, 'spillway simulate large-fleet'],
      ['$ an hour for a replica', measured.usdPerReplicaHour, `profile ${PROFILE}`],
    ],
  }
}

/** The highest rate of the experiment at which every answer was in time, with its medians. */
function lastInTime(result: Result): { perReplicaS: number; ttftMs: number; tokenMs: number } {
  for (const { title, columns, rows } of result.tables.toReversed()) {
    const row = rows.find(([mode]) => mode === 'chunked')
    const at = (column: string): number => Number(row?.[columns.indexOf(column)])
    if (at('in time %') >= 100)
      return { perReplicaS: Number.parseFloat(title), ttftMs: at('TTFT p50 ms'), tokenMs: at('mean token p50 ms') }
  }
  throw new Error('chunked-prefill.json has no rate at which every answer is in time')
}

const WANTED: readonly Wanted[] = [100_000, 1_000_000, 2_000_000, 10_000_000].flatMap((requestsPerS) =>
  [1, 8].map((tokensPerPiece) => ({
    requestsPerS,
    tokensPerPiece,
    regions: REGIONS,
    regionsLost: 1,
    useRatio: USE_RATIO,
    coresPerHost: 64,
  })),
)

function fleetRow(wanted: Wanted, measured: Measured): Cell[] {
  const fleet = fleetFor(wanted, measured)
  const { replicas, cells, gatewayCores, gatewayHosts, openStreams, streamGb, gbitPerS, auditTbPerDay } = fleet
  return [
    wanted.requestsPerS,
    wanted.tokensPerPiece,
    replicas,
    cells,
    gatewayCores,
    gatewayHosts,
    openStreams,
    streamGb,
    gbitPerS,
    auditTbPerDay,
    fleet.usdPerHour,
    fleet.usdPerMillionTokens,
  ]
}

/** Parts of what all regions can do: with a spare region, and without one. */
const LOADS = [
  ['two regions could do it all', (USE_RATIO * (REGIONS - 1)) / REGIONS],
  ['all three are needed', USE_RATIO],
] as const

interface LossOutcome {
  readonly calm: StatsView
  readonly lost: StatsView
  readonly elsewhereRatio: number
}

async function loseRegion(load: number, perReplicaS: number, seed: number): Promise<LossOutcome> {
  const stats = { calm: new Stats(), lost: new Stats() }
  let came = 0
  let elsewhere = 0
  await runRegions({
    seed,
    regions: REGIONS,
    cellsPerRegion: CELLS_PER_REGION,
    ratePerS: load * REGIONS * CELLS_PER_REGION * REPLICAS_PER_CELL * perReplicaS,
    ...RUN,
    note(settled, slo, { us, isElsewhere }) {
      const atS = settled.arrivedAt / 1e6
      const part = (Object.keys(PARTS) as (keyof typeof PARTS)[]).find(
        (name) => atS >= PARTS[name].fromS && atS < PARTS[name].toS,
      )
      if (part === undefined) return
      if (part === 'lost') came++
      if (part === 'lost' && isElsewhere) elsewhere++
      const { firstTokenAt } = settled
      const seen = firstTokenAt === undefined ? settled : { ...settled, firstTokenAt: firstTokenAt + us }
      stats[part].observe(seen, slo, 0)
    },
  })
  const view = (part: keyof typeof PARTS): StatsView => stats[part].view(PARTS[part].toS - PARTS[part].fromS)
  return { calm: view('calm'), lost: view('lost'), elsewhereRatio: elsewhere / Math.max(1, came) }
}

async function run({ seeds, progress }: ExperimentOptions): Promise<Findings> {
  const { measured, rows } = readMeasured()
  const lossRows: Cell[][] = []
  for (const [name, load] of LOADS) {
    const outcomes: LossOutcome[] = []
    for (const seed of seeds) {
      progress(`${name}, seed ${seed}`)
      outcomes.push(await loseRegion(load, measured.perReplicaS, seed))
    }
    const over = (of: (outcome: LossOutcome) => number): number => mean(outcomes.map(of))
    const rates = (part: 'calm' | 'lost'): number[] => [
      over((one) => 100 * (1 - one[part].goodput.ratio)),
      over((one) => (100 * one[part].degraded) / one[part].requests.arrived),
      over((one) => one[part].latency.ttft.p95 ?? 0),
    ]
    const lostRates = [
      over((one) => one.lost.requests.failed),
      over((one) => (100 * one.lost.requests.shed) / one.lost.requests.arrived),
    ]
    lossRows.push([name, ...rates('calm'), ...rates('lost'), ...lostRates, over((one) => 100 * one.elsewhereRatio)])
  }
  const million = WANTED.filter(({ requestsPerS }) => requestsPerS === 1_000_000).map((wanted) =>
    fleetFor(wanted, measured),
  )
  const [single, gathered] = million as [ReturnType<typeof fleetFor>, ReturnType<typeof fleetFor>]
  const count = (value: number): string => Math.round(value).toLocaleString('en-US')
  return {
    tables: [
      { title: 'Measured figures', columns: ['figure', 'value', 'from'], rows },
      {
        title: `Fleets: ${REGIONS} regions, of which one may be lost; ${100 * USE_RATIO} % of the capacity used`,
        columns: FLEET,
        rows: WANTED.map((wanted) => fleetRow(wanted, measured)),
      },
      {
        title: `Simulated: ${REGIONS} regions of ${CELLS_PER_REGION} cells of ${REPLICAS_PER_CELL} replicas, one region lost`,
        columns: LOSS,
        rows: lossRows,
      },
    ],
    verdict: [
      `A million requests a second take ${count(single.replicas)} replicas in ${single.cells} cells, and ${count(single.gatewayCores)} cores of gateways where engines send every token by itself, ${count(gathered.gatewayCores)} where they send eight at a time (vLLM’s \`--stream-interval 8\`). The gateways cost CPU by the event, not by the request.`,
      `When a region is lost and the other two were sized for it, ${(lossRows[0]![4] as number).toFixed(1)} % of the requests of the ${PARTS.lost.toS - PARTS.lost.fromS} s around it are not served in time: ${count(lossRows[0]![7] as number)} answers that ran there, and few others. Without a spare region ${(lossRows[1]![4] as number).toFixed(1)} % are not, and ${(lossRows[1]![5] as number).toFixed(0)} % are degraded instead (less context, shorter answers, the small model).`,
      'Arithmetic scales; queues do not. So cells are simulated as whole platforms, and the number of cells is arithmetic: nothing is shared between cells (docs/architecture/internet-scale.md).',
    ],
  }
}

const FLEET = [
  'requests/s',
  'tokens an event',
  'replicas',
  'cells',
  'gateway cores',
  'hosts of 64 cores',
  'open streams',
  'their memory GB',
  'answers Gbit/s',
  'audit TB/day',
  '$/hour for GPUs',
  '$/M tokens',
]
const LOSS = [
  'load',
  'calm: missed %',
  'degraded %',
  'TTFT p95 ms',
  'region lost: missed %',
  'degraded %',
  'TTFT p95 ms',
  'answers broken off',
  'refused %',
  'served by another region %',
]

await runExperiment({
  name: 'internet-scale',
  title: 'Internet scale: what millions of requests a second take',
  about: `Arithmetic on figures that were measured here, and a simulation of its smallest form. Conversations as in Azure’s trace on ${PROFILE}; every region has room for its part when another is gone. In the simulation region 0 is lost at ${RUN.lostS.from} s with everything that it was doing; what is refused is asked for once more in another region, 100 ms away. *Missed*: refused, lost or late. The part begins at ${PARTS.lost.fromS} s, when the first came who may be hit.`,
  seeds: 1,
  run,
})
