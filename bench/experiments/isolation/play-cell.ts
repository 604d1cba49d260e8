import { engineOptionsOf } from '../../../src/assembly/engine-options.ts'
import type { SecondClosed } from '../../../src/domain/cost-entry.ts'
import type { Entry, Settled } from '../../../src/domain/entry.ts'
import { type FullWorkPrices, fullWorkPrices } from '../../../src/engine/full-work.ts'
import { isGood } from '../../../src/sim/report/stats.ts'
import { configOf } from '../../../src/sim/scenario/scenario-config.ts'
import { simulate } from '../../../src/sim/simulate.ts'
import { workS } from '../unseen/cell-requests.ts'
import { CALM_IDS, PROFILE, SATURATING_TIMES, SHARE, type Staging, secondsOf, stageCell } from './cell-scenario.ts'
import type { Cell } from './grid.ts'

/** One cell under one seed: with the offender, the same calm traffic alone, and the offender alone. */
export interface CalmSeen {
  readonly arrived: number
  readonly good: number
  readonly aloneGood: number
  /** Requests that are good when the calm tenants are alone, and are refused here, or answered late. */
  readonly refused: number
  readonly late: number
  /** Of the refused: requests of the offender were admitted within half a second. */
  readonly refusedBeside: number
  readonly promisedMs: number
  /** First tokens, ascending. */
  readonly ttftMs: readonly number[]
}

export interface CellSeen {
  readonly id: string
  readonly seed: number
  readonly calm: readonly CalmSeen[]
  /** What the offender asked for, in multiples of its share. */
  readonly times: number
  /**
   * Engine time that the offender got ÷ its share of what it gets alone. Or the part of what is served to it alone that
   * is served here too, by work, where that is more: who asks for little, or leaves, cannot get its share.
   */
  readonly got: number
  /** Work of answers that kept their promises, as far as it was done in the cell's time, in seconds of a full engine. */
  readonly goodWorkS: number
  readonly offenderGoodWorkS: number
  readonly laws: readonly string[]
  /** Processor time of this cell; controls are counted once, where they are first needed. */
  readonly cpuS: number
}

interface Heard {
  readonly settled: ReadonlyMap<string, Settled>
  readonly good: ReadonlySet<string>
  readonly goodWorkS: ReadonlyMap<string, number>
  /** Work for each request of the offender that was answered, or left by its client after the first token. */
  readonly servedS: ReadonlyMap<string, number>
  readonly engineS: ReadonlyMap<string, number>
  /** When requests of tenants other than the calm ones were admitted. */
  readonly admittedAt: readonly number[]
  readonly promisesMs: ReadonlyMap<string, number>
  readonly offenderIds: ReadonlySet<string>
  readonly laws: readonly string[]
  readonly times: number
}

/** Runs cells, and keeps what several cells or seeds have in common. */
export class CellPlayer {
  readonly #seconds: number | undefined
  #prices: FullWorkPrices | undefined
  readonly #alone = new Map<string, Heard>()
  readonly #fairS = new Map<string, number>()

  constructor(seconds?: number) {
    this.#seconds = seconds
  }

  async play(cell: Cell, seed: number): Promise<CellSeen> {
    const before = process.cpuUsage()
    const alone = await this.#calmAlone(cell, seed)
    const claim = await this.#claimOf(cell, seed)
    const heard = await this.#hear(cell, seed, { who: 'both' })
    const { user, system } = process.cpuUsage(before)
    return {
      id: cell.id,
      seed,
      calm: CALM_IDS.map((id) => calmSeen(id, heard, alone)),
      times: heard.times,
      got: gotOf(heard, claim),
      goodWorkS: sumOf(heard.goodWorkS),
      offenderGoodWorkS: sumOf(heard.goodWorkS, heard.offenderIds),
      laws: heard.laws,
      cpuS: (user + system) / 1e6,
    }
  }

  /** The calm tenants without anybody else: the same for all cells with as many replicas and as much time. */
  async #calmAlone(cell: Cell, seed: number): Promise<Heard> {
    const seconds = secondsOf(cell, this.#pricesOf(cell), this.#seconds)
    const name = `${cell.offence.replicas} ${cell.calmPerS} ${seconds} ${seed}`
    const heard = this.#alone.get(name) ?? (await this.#hear(cell, seed, { who: 'calm', seconds }))
    this.#alone.set(name, heard)
    return heard
  }

  async #claimOf(cell: Cell, seed: number): Promise<Claim> {
    const asked = await this.#hear(cell, seed, { who: 'offender' })
    const isSaturating = cell.offence.times === 'bursts' || asked.times >= SATURATING_TIMES
    const fairS = isSaturating ? SHARE * engineSOf(asked) : await this.#saturatedFairOf(cell)
    return { fairS, servedS: asked.servedS }
  }

  /** Where the cell itself does not ask for more than there is; under one seed, which is enough for a sum. */
  async #saturatedFairOf(cell: Cell): Promise<number> {
    const known = this.#fairS.get(cell.id)
    if (known !== undefined) return known
    const fairS = SHARE * engineSOf(await this.#hear(cell, 1, { who: 'offender', timesMin: SATURATING_TIMES }))
    this.#fairS.set(cell.id, fairS)
    return fairS
  }

  async #hear(cell: Cell, seed: number, staging: Staging): Promise<Heard> {
    const prices = this.#pricesOf(cell)
    const staged = stageCell(cell, prices, { seconds: this.#seconds, ...staging })
    const { scenario, offenderIds, fromS, toS, times } = staged
    const { slos, tenants } = configOf(scenario, seed).config
    const sloOf = new Map(tenants.map(({ id, slo }) => [id, slos.find(({ name }) => name === slo)]))
    const ear = new Ear(prices, fromS * 1e6, toS * 1e6, sloOf as Ear['sloOf'])
    const report = await simulate(scenario, { seed, onEntry: (entry) => ear.take(entry) })
    const promisesMs = new Map([...ear.sloOf].map(([id, { ttftMs }]) => [id, ttftMs]))
    const { settled, good, goodWorkS, servedS, engineS, admittedAt } = ear
    const summed = { settled, good, goodWorkS, servedS, engineS, admittedAt }
    return { ...summed, offenderIds, times, promisesMs, laws: report.laws.map(({ law, what }) => `${law}: ${what}`) }
  }

  #pricesOf(cell: Cell): FullWorkPrices {
    if (this.#prices !== undefined) return this.#prices
    const { scenario } = stageCell(cell, NO_PRICES, { who: 'calm' })
    this.#prices = fullWorkPrices(engineOptionsOf(configOf(scenario, 1).config, PROFILE))
    return this.#prices
  }
}

/** What the offender may expect. */
interface Claim {
  /** Its share of the engine time that it gets alone, asking for more than it can have. */
  readonly fairS: number
  /** What is done alone for the requests of the cell. */
  readonly servedS: ReadonlyMap<string, number>
}

const engineSOf = ({ engineS, offenderIds }: Heard): number => sumOf(engineS, offenderIds)

function gotOf(heard: Heard, { fairS, servedS }: Claim): number {
  const ofTime = engineSOf(heard) / Math.max(1e-9, fairS)
  const alsoHere = [...servedS.keys()].filter((ticketId) => heard.servedS.has(ticketId))
  const ofServed = servedS.size === 0 ? 1 : sumOf(servedS, alsoHere) / Math.max(1e-9, sumOf(servedS))
  return Math.max(ofTime, ofServed)
}

const NO_PRICES: FullWorkPrices = { promptTokenUs: 1, outputTokenUs: 1, contextTokenUs: 0 }

interface Promised {
  readonly ttftMs: number
  readonly interTokenMs: number
  readonly totalMs: number
}

/** Keeps of a journal what the cell needs: tickets that arrived, and seconds that were closed, while the offender was there. */
class Ear {
  readonly settled = new Map<string, Settled>()
  readonly good = new Set<string>()
  readonly goodWorkS = new Map<string, number>()
  readonly servedS = new Map<string, number>()
  readonly engineS = new Map<string, number>()
  readonly admittedAt: number[] = []
  readonly #prices: FullWorkPrices
  readonly #fromAt: number
  readonly #toAt: number
  readonly sloOf: ReadonlyMap<string, Promised>

  constructor(prices: FullWorkPrices, fromAt: number, toAt: number, sloOf: ReadonlyMap<string, Promised>) {
    this.#prices = prices
    this.#fromAt = fromAt
    this.#toAt = toAt
    this.sloOf = sloOf
  }

  take(entry: Entry): void {
    if (entry.kind === 'settled') this.#settle(entry)
    else if (entry.kind === 'second-closed') this.#second(entry)
    else if (entry.kind === 'admitted' && !isCalm(entry.tenantId)) this.admittedAt.push(entry.at)
  }

  #settle(entry: Settled): void {
    const { arrivedAt, tenantId, ticketId, outcome } = entry
    const slo = this.sloOf.get(tenantId)
    if (slo === undefined || arrivedAt < this.#fromAt || arrivedAt >= this.#toAt) return
    if (isCalm(tenantId)) this.settled.set(ticketId, entry)
    const { ttftMs, interTokenMs, totalMs } = slo
    const promise = { name: '', ttftUs: ttftMs * 1e3, interTokenUs: interTokenMs * 1e3, totalUs: totalMs * 1e3 }
    const doneS = this.#workIn(entry)
    const isServed = entry.firstTokenAt !== undefined && (outcome === 'completed' || outcome === 'cancelled')
    if (isServed && !isCalm(tenantId)) this.servedS.set(ticketId, doneS)
    if (outcome !== 'completed' || !isGood(entry, promise)) return
    if (isCalm(tenantId)) this.good.add(ticketId)
    add(this.goodWorkS, tenantId, doneS)
  }

  /** Work for a ticket until the cell's end: tokens come evenly from the first to the last. */
  #workIn({ usage, firstTokenAt, at }: Settled): number {
    const { promptTokens, outputTokens } = usage
    if (at <= this.#toAt) return workS(this.#prices, usage)
    if (firstTokenAt === undefined || firstTokenAt >= this.#toAt) return 0
    const ratio = (this.#toAt - firstTokenAt) / (at - firstTokenAt)
    return workS(this.#prices, { promptTokens, outputTokens: outputTokens * ratio })
  }

  #second({ fromAt, nanoPerHour, tenants }: SecondClosed): void {
    if (fromAt < this.#fromAt || fromAt >= this.#toAt) return
    for (const { tenantId, usedNano } of tenants) add(this.engineS, tenantId, usedNano / (nanoPerHour / 3_600))
  }
}

const isCalm = (tenantId: string): boolean => (CALM_IDS as readonly string[]).includes(tenantId)

function add(sums: Map<string, number>, name: string, value: number): void {
  sums.set(name, (sums.get(name) ?? 0) + value)
}

function sumOf(sums: ReadonlyMap<string, number>, names: Iterable<string> = sums.keys()): number {
  let sum = 0
  for (const name of names) sum += sums.get(name) ?? 0
  return sum
}

/** Microseconds around a refusal. */
const BESIDE_US = 500_000

function calmSeen(tenantId: string, heard: Heard, alone: Heard): CalmSeen {
  const own = [...heard.settled.values()].filter((entry) => entry.tenantId === tenantId)
  const lost = own.filter(({ ticketId }) => !heard.good.has(ticketId) && alone.good.has(ticketId))
  const refused = lost.filter(({ firstTokenAt }) => firstTokenAt === undefined)
  const ttftMs = own.flatMap(({ firstTokenAt, arrivedAt }) =>
    firstTokenAt === undefined ? [] : [(firstTokenAt - arrivedAt) / 1e3],
  )
  const isBeside = ({ at }: Settled): boolean => heard.admittedAt.some((other) => Math.abs(other - at) <= BESIDE_US)
  return {
    arrived: own.length,
    good: own.filter(({ ticketId }) => heard.good.has(ticketId)).length,
    aloneGood: [...alone.good].filter((ticketId) => alone.settled.get(ticketId)?.tenantId === tenantId).length,
    refused: refused.length,
    late: lost.length - refused.length,
    refusedBeside: refused.filter(isBeside).length,
    promisedMs: heard.promisesMs.get(tenantId) ?? 0,
    ttftMs: ttftMs.toSorted((a, b) => a - b),
  }
}
