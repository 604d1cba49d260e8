import { join } from 'node:path'
import { LeastLoaded } from '../../src/policy/dispatch/placer.ts'
import type { ReplicaRoom } from '../../src/policy/dispatch/replica-room.ts'
import type { PlacementAsk, RoomView } from '../../src/policy/routing/room-view.ts'
import type { SimulateOptions } from '../../src/sim/simulate.ts'
import { type ExperimentOptions, type Findings, runExperiment } from './kit/experiment.ts'
import { type Play, playAll } from './kit/play.ts'
import type { Cell, Table } from './kit/result.ts'

/** Where should a prompt go whose beginning some replica has read already? */
type Install = NonNullable<SimulateOptions['onAssembled']>
type Choose = (now: number, ask: PlacementAsk, rooms: readonly RoomView[]) => RoomView

interface Way {
  /** Ours, if absent. */
  readonly makeChoose?: () => Choose
  /** Admission and limits plan as if nobody had read anything. */
  readonly isPrefixUncounted?: true
}

/** Puts a placer in the place of ours, if there is one, and counts how often there was nothing to choose. */
function installing(way: Way, turns: { all: number; single: number }): Install {
  return ({ policies: { placer } }) => {
    const choose: Choose = way.makeChoose?.() ?? placer.choose.bind(placer)
    if (way.isPrefixUncounted === true) placer.cachedTokens = () => 0
    placer.choose = <R extends RoomView>(now: number, ask: PlacementAsk, rooms: readonly R[]): R => {
      turns.all++
      if (rooms.length === 1) turns.single++
      return choose(now, ask, rooms) as R
    }
  }
}

function leastLoaded(): Choose {
  const placer = new LeastLoaded()
  return (now, ask, rooms) => placer.choose(now, ask, rooms as readonly ReplicaRoom[])
}

/** The next of those with room, in the order in which they were added. */
function roundRobin(): Choose {
  let last = -1
  return (_now, _ask, rooms) => {
    const inOrder = [...rooms].sort((a, b) => a.ordinal - b.ordinal)
    const next = inOrder.find(({ ordinal }) => ordinal > last) ?? (inOrder[0] as RoomView)
    last = next.ordinal
    return next
  }
}

const PLACERS: ReadonlyArray<readonly [string, Way]> = [
  ['round robin', { makeChoose: roundRobin }],
  ['least loaded', { makeChoose: leastLoaded }],
  ['spillway: prefix-aware', {}],
  ['the same, plans not counting prefixes', { isPrefixUncounted: true }],
]

const HEAVY = join(import.meta.dirname, 'scenarios/prefix-heavy.yaml')

const COLUMNS = [
  'placer',
  'prefix hits %',
  'good answers/s',
  'shed %',
  'TTFT p50 ms',
  'TTFT p95 ms',
  'ITL p95 ms',
  'one room only %',
  'engines busy %',
]

async function run({ trace, seeds, progress }: ExperimentOptions): Promise<Findings> {
  const workloads: ReadonlyArray<readonly [string, Pick<Play, 'scenario' | 'set' | 'trace'>]> = [
    ...[12, 20, 30].map(
      (rate) =>
        [
          `200 beginnings of 6,000 tokens, ${rate} requests a second, 4 replicas`,
          { scenario: HEAVY, set: { 'workload.0.arrivals.ratePerS': rate } },
        ] as const,
    ),
    ['20 beginnings, which fit everywhere, 30 a second', { scenario: HEAVY, set: { 'workload.0.prefix.groups': 20 } }],
    [
      `Mooncake${trace === undefined ? ', as fitted' : '’s trace'}: documents asked about again, 6 replicas`,
      {
        scenario: 'mooncake',
        set: { durationS: 300, 'platform.ladder.enabled': false },
        ...(trace === undefined ? {} : { trace: { path: trace, factor: 1 } }),
      },
    ],
  ]
  const tables: Table[] = []
  const verdict: string[] = []
  for (const [title, how] of workloads) {
    const rows: Cell[][] = []
    for (const [label, way] of PLACERS) {
      progress(`${title}: ${label}`)
      const turns = { all: 0, single: 0 }
      const over = await playAll({ ...how, install: installing(way, turns) }, seeds)
      rows.push([
        label,
        100 * over(({ engine }) => engine.prefixHitRatio),
        over(({ goodput }) => goodput.requestsPerS),
        100 * over(({ requests }) => requests.shed / requests.arrived),
        over(({ latency }) => latency.ttft.p50),
        over(({ latency }) => latency.ttft.p95),
        over(({ latency }) => latency.itl.p95),
        (100 * turns.single) / turns.all,
        100 * over(({ engine }) => engine.utilisation),
      ])
    }
    tables.push({ title, columns: COLUMNS, rows })
    const [, least, ours] = rows as [Cell[], Cell[], Cell[]]
    const [hits, good, , p50] = ours.slice(1).map(Number)
    const [leastHits, leastGood, , leastP50] = least.slice(1).map(Number)
    verdict.push(
      `${title}: ${hits!.toFixed(0)} % of prompt tokens found against ${leastHits!.toFixed(0)} % with least loaded, half of the first tokens within ${p50!.toFixed(0)} ms against ${leastP50!.toFixed(0)}, ${good!.toFixed(1)} good answers a second against ${leastGood!.toFixed(1)}.`,
    )
  }
  verdict.push(
    'At 30 requests a second every replica is full: a turn is given as soon as any one has room, and for most turns only that one is offered to the placer (*one room only*), so hits fall to what chance gives. Plans count a prefix as read only while there is a choice of replica; the last row never counts it, and finds fewer prefixes below saturation.',
  )
  return { tables, verdict }
}

await runExperiment({
  name: 'prefix-routing',
  title: 'Routing by prefix, by load, and in turn',
  about:
    'The whole platform with three placers on the same requests; h100-llama-8b engines with a prefix cache. Prefix-aware routing takes the replica with the least predicted time to the first token, what it holds of the prompt included.',
  seeds: 1,
  run,
})
