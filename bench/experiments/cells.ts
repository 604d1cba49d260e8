import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { secondsToUs, US_PER_S } from '../../src/base/clock.ts'
import { Rng } from '../../src/base/rng.ts'
import type { Settled } from '../../src/domain/entry.ts'
import { isGood, Stats, type StatsView } from '../../src/sim/report/stats.ts'
import { CellRouter, ROUTES, type RouteName } from './kit/cell-router.ts'
import { askCell, CELLS, gaugeOf, loseCell, makeCells, REPLICAS_PER_CELL, sendAll } from './kit/cell-world.ts'
import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import { linesSvg } from './kit/lines-svg.ts'
import type { Cell } from './kit/result.ts'

/** How should a global router share requests between cells that it knows only by old news? */
const ROUTERS = 8
const GAUGE_EVERY_S = 1
/** Of what sixteen cells of four replicas can do (about 22 requests a second each). */
const LOAD = 0.95
const RATE_PER_S = LOAD * CELLS * REPLICAS_PER_CELL * 22
/** Prompt and answer of a mean request, in the unit of load, over the replicas of a cell. */
const SEND_LOAD = (1_150 + 4 * 210) / REPLICAS_PER_CELL
const UNTIL_S = 60

const PARTS = {
  calm: { fromS: 10, toS: 20 },
  hot: { fromS: 20, toS: 35 },
  lost: { fromS: 38, toS: 50 },
} as const
type PartName = keyof typeof PARTS
/** Between two publications, so that routers learn of it late. */
const LOST_S = { from: 40.5, to: 50 }
const HOT_FACTOR = 6

interface Outcome {
  readonly parts: Readonly<Record<PartName, StatsView>>
  /** Busiest cell ÷ mean, by work done, over the calm part. */
  readonly spread: number
  /** Not served in time, of those who came in that second. */
  readonly missedPerS: readonly number[]
}

async function runRoute(name: RouteName, seed: number): Promise<Outcome> {
  const world = await makeCells(seed)
  const routers = Array.from(
    { length: ROUTERS },
    (_, i) => new CellRouter(name, CELLS, Rng.stream(seed, `router/${i}`)),
  )
  const publish = (): void => {
    const gauges = world.cells.map(gaugeOf)
    for (const router of routers) router.published(gauges)
    if (world.clock.now() < secondsToUs(UNTIL_S))
      world.clock.at(world.clock.now() + secondsToUs(GAUGE_EVERY_S), publish)
  }
  publish()
  loseCell(world, world.cells[0]!, LOST_S.from, LOST_S.to)

  const stats = { calm: new Stats(), hot: new Stats(), lost: new Stats() }
  const came = Array.from({ length: UNTIL_S }, () => 0)
  const missed = Array.from({ length: UNTIL_S }, () => 0)
  const servedBy = world.cells.map(() => 0)
  const note = (settled: Settled, cell: number): void => {
    const atS = settled.arrivedAt / US_PER_S
    const slo = world.callers[0]!.tenant.slo
    const second = Math.floor(atS)
    came[second]!++
    if (settled.outcome !== 'completed' || !isGood(settled, slo)) missed[second]!++
    for (const [part, { fromS, toS }] of Object.entries(PARTS)) {
      if (atS >= fromS && atS < toS) stats[part as PartName].observe(settled, slo, 0)
    }
    if (atS >= PARTS.calm.fromS && atS < PARTS.calm.toS) servedBy[cell]! += settled.usage.outputTokens
  }
  const dealer = Rng.stream(seed, 'dealer')
  const demand = {
    untilS: UNTIL_S,
    ratePerS: () => RATE_PER_S,
    hotFactor: (atS: number) => (atS >= PARTS.hot.fromS && atS < PARTS.hot.toS ? HOT_FACTOR : 1),
  }
  sendAll(world, demand, seed, async (request, outputTokens) => {
    const router = routers[dealer.below(ROUTERS)]!
    const first = router.first(request.tenant.id, SEND_LOAD)
    const settled = await askCell(world, world.cells[first]!, request, outputTokens)
    const second = settled.outcome === 'rejected' ? router.second(first, SEND_LOAD) : undefined
    if (second === undefined) return note(settled, first)
    const again = { ...request, id: `${request.id}-2` }
    note(await askCell(world, world.cells[second]!, again, outputTokens), second)
  })
  await world.clock.run(secondsToUs(UNTIL_S + 60))
  const view = (part: PartName): StatsView => stats[part].view(PARTS[part].toS - PARTS[part].fromS)
  return {
    parts: { calm: view('calm'), hot: view('hot'), lost: view('lost') },
    spread: Math.max(...servedBy) / mean(servedBy),
    missedPerS: missed.map((count, i) => (100 * count) / Math.max(1, came[i]!)),
  }
}

async function run({ seeds, progress }: ExperimentOptions): Promise<Findings> {
  const rows: Cell[][] = []
  const lines: { name: string; values: readonly number[] }[] = []
  const good = new Map<string, number>()
  for (const name of ROUTES) {
    const outcomes: Outcome[] = []
    for (const seed of seeds) {
      progress(`${name}, seed ${seed}`)
      outcomes.push(await runRoute(name, seed))
    }
    const over = (of: (outcome: Outcome) => number): number => mean(outcomes.map(of))
    const part = (which: PartName): number[] => [
      over(({ parts }) => 100 * (1 - parts[which].goodput.ratio)),
      over(({ parts }) => parts[which].latency.ttft.p95 ?? 0),
    ]
    rows.push([name, over(({ spread }) => spread), ...part('calm'), ...part('hot'), ...part('lost')])
    for (const which of ['calm', 'hot', 'lost'] as const) {
      good.set(
        `${name} ${which}`,
        over(({ parts }) => 100 * (1 - parts[which].goodput.ratio)),
      )
    }
    lines.push({ name, values: outcomes[0]!.missedPerS })
  }
  const svg = linesSvg({ title: 'Not served in time, % of those who came', lines, marks: PARTS })
  writeFileSync(join(import.meta.dirname, '../../docs/architecture/cells.svg'), svg)
  const of = (which: string): string => `${(good.get(which) ?? 0).toFixed(1)} %`
  return {
    tables: [{ title: 'Not served in time, and first tokens', columns: COLUMNS, rows }],
    verdict: [
      `With a cell lost, ${of('spill lost')} are not served in time where who is refused is asked for elsewhere once, ${of('two-choices lost')} with two choices alone and ${of('home lost')} with one home.`,
      `When the largest tenant sends ${HOT_FACTOR} times as much: ${of('spill hot')}, ${of('two-choices hot')} and ${of('home hot')}.`,
      `Running to whoever was least loaded a second ago: ${of('least calm')} on a calm day, against ${of('random calm')} at random and ${of('spill calm')} with two choices and spilling.`,
      'The plot is docs/architecture/cells.svg; what it means for a platform of millions of requests a second is in docs/architecture/cells.md.',
    ],
  }
}

const COLUMNS = [
  'router',
  'busiest cell ÷ mean',
  'calm: missed %',
  'TTFT p95 ms',
  'hot tenant: missed %',
  'TTFT p95 ms',
  'cell lost: missed %',
  'TTFT p95 ms',
]

await runExperiment({
  name: 'cells',
  title: 'Many cells behind a global router',
  about: `${CELLS} cells, each a whole platform with ${REPLICAS_PER_CELL} H100 replicas and its own admission, on one virtual clock; ${ROUTERS} routers before them that see each cell’s load once a second and nothing else. 200 tenants by Zipf’s law send ${Math.round(RATE_PER_S)} requests a second, ${Math.round(100 * LOAD)} % of what there is. From 20 to 35 s the largest sends ${HOT_FACTOR} times as much; from ${LOST_S.from} to ${LOST_S.to} s one cell is gone, with everything that it was doing (the part begins at 38 s, when those came who are hit). *Missed*: refused, lost or late.`,
  seeds: 1,
  run,
})
