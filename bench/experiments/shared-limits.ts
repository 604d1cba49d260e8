import { type ExperimentOptions, type Findings, mean, runExperiment } from './kit/experiment.ts'
import type { Cell } from './kit/result.ts'
import { FAULT_MIXES, l4Bound, playSharedLimits, type SharedLimitsOptions } from './kit/shared-limits-world.ts'
import { drawHomes, playSharedRoom, type RoomTenant, type RoomWay } from './kit/shared-room-world.ts'

/** Do four gateways keep one budget, whatever happens to the store, and share one pool by weight? */
const SECOND = 1_000_000
const LIMIT = { perMinute: 600_000, burst: 20_000 }
const BASE = {
  gatewayCount: 4,
  limit: LIMIT,
  shares: [0.7, 0.1, 0.1, 0.1],
  load: 2,
  requestTokens: [50, 150] as const,
  durationUs: 20 * SECOND,
}
const WAYS = ['slices', 'full', 'static'] as const

const ROOM_WAYS: readonly RoomWay[] = ['alone', 'static', 'room', 'room and weights']

async function run({ seeds, progress }: ExperimentOptions): Promise<Findings> {
  const rows: Cell[][] = []
  let over = 0
  for (const [name, faults] of Object.entries(FAULT_MIXES)) {
    progress(name)
    const row: Cell[] = [name]
    for (const way of WAYS) {
      const played = []
      for (const seed of seeds) {
        const options: SharedLimitsOptions = { ...BASE, seed, faults, way }
        const result = await playSharedLimits(options)
        if (way === 'slices' && result.excess > l4Bound(options)) over++
        played.push(result)
      }
      row.push(Math.round(Math.max(...played.map(({ excess }) => excess)) - LIMIT.burst))
      // The six seconds from the fault on.
      const used = mean(played.map(({ perSecond }) => mean(perSecond.slice(6, 12)))) / (LIMIT.perMinute / 60)
      row.push(Math.round(100 * used))
    }
    rows.push(row)
  }
  const roomRows = ROOM_WAYS.map((way) => [way, ...roomCells(way, seeds)])
  const least = roomRows.at(-1)?.[5]
  return {
    tables: [
      {
        title:
          'One budget, four gateways: most over R·w + B in any window, and use of R in the six seconds from the fault on',
        columns: ['fault', ...WAYS.flatMap((way) => [`${way}: over`, `${way}: % of R`])],
        rows,
      },
      {
        title: 'One pool of 64 slots, four gateways, saturated: Jain\u2019s index, worst share ÷ entitled',
        columns: ['way', 'A at 4, B at 1', 'worst', 'weights 1:2:4', 'worst', '20 tenants', 'worst', 'most in flight'],
        rows: roomRows,
      },
    ],
    verdict: [
      `Slices: ${over} of ${rows.length * seeds.length} runs over the bound of law L4.`,
      `Room and scaled weights: Jain's index of 20 tenants at random gateways is ${Number(least).toFixed(4)} at the least; the bar is 0.995.`,
    ],
  }
}

function roomCells(way: RoomWay, seeds: readonly number[]): Cell[] {
  const tenantsOf: ReadonlyArray<(seed: number) => readonly RoomTenant[]> = [
    () => [
      { weight: 1, homes: [0, 1, 2, 3] },
      { weight: 1, homes: [0] },
    ],
    () => [
      { weight: 1, homes: [0, 1, 2, 3] },
      { weight: 2, homes: [0, 1] },
      { weight: 4, homes: [3] },
    ],
    (seed) => drawHomes(seed, 20, 4),
  ]
  let inFlightMax = 0
  const cells = tenantsOf.flatMap((of) => {
    const played = seeds.map((seed) =>
      playSharedRoom({ seed, way, gatewayCount: 4, slots: 64, tenants: of(seed), seconds: 60 }),
    )
    inFlightMax = Math.max(inFlightMax, ...played.map((one) => one.inFlightMax))
    return [Math.min(...played.map(({ jain }) => jain)), Math.min(...played.map(({ worst }) => worst))]
  })
  return [...cells, inFlightMax]
}

await runExperiment({
  name: 'shared-limits',
  title: 'Many gateways, one budget and one pool',
  about:
    'Virtual time. Four gateways get 70/10/10/10 % of twice what one budget of 10,000 tokens a second and a burst of 20,000 allows; faults begin after six seconds. `slices` is what Spillway does; `full` uses the whole limit at each gateway while the store is away; `static` gives each gateway 1/N for ever. The same slice book, renewals and store run live; the network is simulated. In the second table every tenant always waits at each of its gateways, and gateways know each other\u2019s backlogs exactly.',
  seeds: 5,
  run,
})
