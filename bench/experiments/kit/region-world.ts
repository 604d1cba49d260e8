import { secondsToUs } from '../../../src/base/clock.ts'
import { Rng } from '../../../src/base/rng.ts'
import type { Settled } from '../../../src/domain/entry.ts'
import type { Slo } from '../../../src/domain/tenant.ts'
import { CellRouter } from './cell-router.ts'
import { askCell, gaugeOf, loseCell, makeCells, REPLICAS_PER_CELL, sendAll } from './cell-world.ts'

/**
 * Regions of cells: a request goes to a cell of its own region; who is refused there is asked for once more in another
 * region, half a round trip away in each direction. The cells are whole platforms; the routers know gauges a second old.
 *
 * A region that is lost takes its cells with it, and its routers: from the next publication on its clients reach the
 * routers of the other regions, as anycast or a name server with health checks sends them.
 */
export interface RegionRun {
  readonly seed: number
  readonly regions: number
  readonly cellsPerRegion: number
  readonly ratePerS: number
  readonly untilS: number
  /** Region 0 is gone in this time. */
  readonly lostS: { readonly from: number; readonly to: number }
  readonly note: (settled: Settled, slo: Slo, way: { readonly us: number; readonly isElsewhere: boolean }) => void
}

const GAUGE_EVERY_S = 1
/** Between continents. */
const ROUND_TRIP_US = 100_000
/** Prompt and answer of a mean request, in the unit of load, over the replicas of a cell. */
const SEND_LOAD = (1_150 + 4 * 210) / REPLICAS_PER_CELL

export async function runRegions(run: RegionRun): Promise<void> {
  const { seed, regions, cellsPerRegion, ratePerS, untilS, lostS, note } = run
  const world = await makeCells(seed, regions * cellsPerRegion)
  const routers = Array.from(
    { length: regions },
    (_, region) => new CellRouter('spill', cellsPerRegion, Rng.stream(seed, `region/${region}`)),
  )
  const cellsOf = (region: number) => world.cells.slice(region * cellsPerRegion, (region + 1) * cellsPerRegion)
  const isUp = Array.from({ length: regions }, () => true)
  const publish = (): void => {
    for (const [region, router] of routers.entries()) {
      const gauges = cellsOf(region).map(gaugeOf)
      router.published(gauges)
      isUp[region] = gauges.some((gauge) => gauge.isUp)
    }
    if (world.clock.now() < secondsToUs(untilS)) world.clock.at(world.clock.now() + secondsToUs(GAUGE_EVERY_S), publish)
  }
  publish()
  for (const cell of cellsOf(0)) loseCell(world, cell, lostS.from, lostS.to)

  const dealer = Rng.stream(seed, 'origins')
  const upBut = (region: number): number[] => isUp.flatMap((up, i) => (up && i !== region ? [i] : []))
  const pick = (from: readonly number[]): number | undefined => from[dealer.below(Math.max(1, from.length))]
  const demand = { untilS, ratePerS: () => ratePerS, hotFactor: () => 1 }
  sendAll(world, demand, seed, async (request, outputTokens) => {
    const home = dealer.below(regions)
    const region = isUp[home] ? home : (pick(upBut(home)) ?? home)
    const wayUs = region === home ? 0 : ROUND_TRIP_US
    const first = await ask(region, request, outputTokens)
    const other = first.outcome === 'rejected' ? pick(upBut(region)) : undefined
    if (other === undefined) return note(first, request.slo, { us: wayUs, isElsewhere: region !== home })
    const again = { ...request, id: `${request.id}-2` }
    note(await ask(other, again, outputTokens), request.slo, { us: ROUND_TRIP_US, isElsewhere: true })
  })
  await world.clock.run(secondsToUs(untilS + 60))

  function ask(region: number, request: Parameters<typeof askCell>[2], outputTokens: number): Promise<Settled> {
    const cell = routers[region]!.first(request.tenant.id, SEND_LOAD)
    return askCell(world, cellsOf(region)[cell]!, request, outputTokens)
  }
}
