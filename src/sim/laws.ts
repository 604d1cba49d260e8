import { ChurningMap } from '../base/churning-map.ts'
import type { Instant } from '../base/clock.ts'
import type { AdmittedEntry, AnswerLookedUp, Arrived, AttemptEnded, Entry, Granted, Settled } from '../domain/entry.ts'
import { BUDGET_EMPTY } from '../domain/outcome.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { RateLimitView } from '../policy/budgets/budgets.ts'
import { BudgetLaw } from './budget-law.ts'
import { CostLaw } from './cost-law.ts'
import { ScreenLaw } from './screen-law.ts'

/**
 * The laws that a journal alone can show (docs/architecture/laws.md), checked as it is written, by every simulation and
 * by every test that has a journal:
 *
 *   L1  each ticket ends once; arrived = settled + live
 *   L2  leases granted = returned + held, never over the limit
 *   L4  a tenant's buckets are where its tickets left them (`budget-law.ts`)
 *   L5  arrivedAt ≤ admittedAt ≤ grantedAt ≤ firstTokenAt ≤ settledAt
 *   L14 nothing is answered before its verdict (`screen-law.ts`)
 *   L15 every closed second adds up to its replica's bill (`cost-law.ts`)
 *
 * and that a ticket's own entries agree with each other: what is told in the middle is what the end sums up. Memory is
 * that of the live tickets.
 */
export interface Violation {
  readonly law: 'L1' | 'L2' | 'L4' | 'L5' | 'L7' | 'L13' | 'L14' | 'L15'
  readonly ticketId: string
  readonly what: string
}

export interface LawOptions {
  /** Most leases at once on this replica; unchecked when absent. */
  readonly concurrencyMaxOf?: (replicaId: string) => number
  /** Tenants whose budgets are checked; none when absent. */
  readonly tenants?: Iterable<Tenant>
  /** All tenants: those with judges are not answered without a verdict. Absent: not known. */
  readonly judged?: Iterable<Tenant>
}

/** More violations of one kind say nothing new. */
const VIOLATIONS_MAX = 20

/**
 * What the journal has said of a live ticket. Only its last turn is kept: the one before must have ended when the next
 * is granted.
 */
interface Story {
  readonly arrivedAt: number
  admittedAt: number | undefined
  turns: number
  grantedAt: number | undefined
  replicaId: string
  isHeld: boolean
  ending: AttemptEnded['ending'] | undefined
  /** The ticket was answered from the cache, without a turn. */
  isKnown: boolean
}

export class LawChecker {
  readonly violations: Violation[] = []
  readonly #options: LawOptions
  readonly #live = new ChurningMap<string, Story>()
  /** Leases held by replica; only where there is a limit to compare with. */
  readonly #held = new Map<string, number>()
  readonly #budgets: BudgetLaw
  readonly #costs = new CostLaw((ticketId, what) => this.#broken('L15', ticketId, what))
  readonly #screens: ScreenLaw
  #arrived = 0
  #settled = 0

  constructor(options: LawOptions = {}) {
    this.#options = options
    this.#budgets = new BudgetLaw(options.tenants ?? [], 0)
    this.#screens = new ScreenLaw(options.judged, (ticketId, what) => this.#broken('L14', ticketId, what))
  }

  /** `from` names the process of a gateway, where there are several. */
  take(entry: Entry, from = ''): void {
    this.#budgets.take(entry)
    this.#costs.take(entry, from)
    this.#screens.take(entry)
    switch (entry.kind) {
      case 'arrived':
        this.#arrive(entry)
        return
      case 'admitted':
        this.#admit(entry)
        return
      case 'granted':
        this.#grant(entry)
        return
      case 'attempt-ended':
        this.#end(entry)
        return
      case 'answer-looked-up':
        this.#lookUp(entry)
        return
      case 'settled':
        this.#settle(entry)
        return
      default:
    }
  }

  /** At the end of a run no ticket may be live. */
  finish(): readonly Violation[] {
    for (const ticketId of this.#live.keys()) this.#broken('L1', ticketId, 'it never ended')
    if (this.#arrived !== this.#settled + this.#live.size) this.#broken('L1', '', 'arrived ≠ settled + live')
    return this.violations
  }

  /** At the end of a run whose books are closed: no ticket's cost may be open. */
  finishCosts(): void {
    this.#costs.finish()
  }

  /** The process of a gateway is gone, and with it what it knew of costs. */
  gatewayLost(from: string): void {
    this.#costs.lost(from)
  }

  /** Reports a violation that was found outside the journal. */
  broken(law: Violation['law'], what: string): void {
    this.#broken(law, '', what)
  }

  /** Holds what the platform says is left of each tenant's budgets against what its tickets have left. */
  checkBudgets(now: Instant, viewOf: (tenantId: string) => RateLimitView): void {
    for (const what of this.#budgets.differences(now, viewOf)) this.#broken('L4', '', what)
  }

  #arrive({ ticketId, at }: Arrived): void {
    this.#arrived++
    if (this.#live.get(ticketId) !== undefined) this.#broken('L1', ticketId, 'it arrived twice')
    this.#live.set(ticketId, {
      arrivedAt: at,
      admittedAt: undefined,
      turns: 0,
      grantedAt: undefined,
      replicaId: '',
      isHeld: false,
      ending: undefined,
      isKnown: false,
    })
  }

  #lookUp({ ticketId, outcome }: AnswerLookedUp): void {
    const story = this.#storyOf(ticketId, 'was looked up')
    if (story !== undefined) story.isKnown = outcome === 'hit'
  }

  #admit({ ticketId, at }: AdmittedEntry): void {
    const story = this.#storyOf(ticketId, 'was admitted')
    if (story !== undefined) story.admittedAt ??= at
  }

  #grant({ ticketId, at, attempt, replicaId }: Granted): void {
    this.#hold(ticketId, replicaId)
    const story = this.#storyOf(ticketId, 'was granted a turn')
    if (story === undefined) return
    if (story.isHeld) this.#broken('L2', ticketId, `the lease of attempt ${story.turns} was never returned`)
    story.turns++
    if (attempt !== story.turns) this.#broken('L2', ticketId, `turn ${story.turns} is counted as attempt ${attempt}`)
    story.grantedAt = at
    story.replicaId = replicaId
    story.isHeld = true
    story.ending = undefined
  }

  #end({ ticketId, at, attempt, replicaId, ending }: AttemptEnded): void {
    if (this.#options.concurrencyMaxOf !== undefined) this.#held.set(replicaId, (this.#held.get(replicaId) ?? 0) - 1)
    const story = this.#storyOf(ticketId, 'ended an attempt')
    if (story === undefined) return
    if (!story.isHeld || attempt !== story.turns || replicaId !== story.replicaId) {
      this.#broken('L2', ticketId, `attempt ${attempt} on ${replicaId} ended, and nothing was held for it`)
    }
    if (story.grantedAt !== undefined && at < story.grantedAt) {
      this.#broken('L2', ticketId, `attempt ${attempt} ended before it began`)
    }
    story.isHeld = false
    story.ending = ending
  }

  #hold(ticketId: string, replicaId: string): void {
    const { concurrencyMaxOf } = this.#options
    if (concurrencyMaxOf === undefined) return
    const count = (this.#held.get(replicaId) ?? 0) + 1
    this.#held.set(replicaId, count)
    const max = concurrencyMaxOf(replicaId)
    if (count > max) this.#broken('L2', ticketId, `${replicaId} has ${count} leases, and room for ${max}`)
  }

  #settle(entry: Settled): void {
    const { ticketId } = entry
    const story = this.#live.get(ticketId)
    if (story === undefined) {
      this.#broken('L1', ticketId, 'it ended without having arrived, or twice')
      return
    }
    this.#settled++
    this.#live.delete(ticketId)
    if (story.isHeld) this.#broken('L2', ticketId, `the lease of attempt ${story.turns} was never returned`)
    this.#checkStamps(entry, story)
    this.#checkSummary(entry, story)
  }

  #checkStamps(entry: Settled, story: Story): void {
    const { ticketId, admittedAt, grantedAt, firstTokenAt, lastTokenAt } = entry
    let before = entry.arrivedAt
    for (const at of [admittedAt, grantedAt, firstTokenAt, lastTokenAt, entry.at]) {
      if (at === undefined) continue
      if (at < before) this.#broken('L5', ticketId, `one stamp is ${at}, and the one before it ${before}`)
      before = at
    }
    if (story.arrivedAt !== entry.arrivedAt) this.#broken('L5', ticketId, 'arrivedAt is not when it arrived')
    if (story.admittedAt !== admittedAt) this.#broken('L5', ticketId, 'admittedAt is not when it was admitted')
    if (story.grantedAt !== grantedAt) this.#broken('L5', ticketId, 'grantedAt is not when it last had a turn')
    if (firstTokenAt !== undefined && story.turns === 0 && !story.isKnown)
      this.#broken('L5', ticketId, 'it had a token without a turn')
  }

  #checkSummary(entry: Settled, { turns, ending, isKnown }: Story): void {
    const { ticketId, outcome, attempts, usage } = entry
    if (attempts !== turns) this.#broken('L1', ticketId, `it says ${attempts} attempts and had ${turns}`)
    if (outcome === 'rejected' && (entry.admittedAt !== undefined || turns > 0)) {
      this.#broken('L1', ticketId, 'it was rejected after it had been admitted')
    }
    // An answer that ran its hard budget empty is completed at that length: its engine was told to stop.
    const isCutByBudget = entry.because === BUDGET_EMPTY && ending === 'cancelled'
    if (outcome === 'completed' && ending !== 'finished' && !isKnown && !isCutByBudget) {
      this.#broken('L1', ticketId, 'it completed without finishing')
    }
    if (isKnown && turns === 0 && usage.promptTokens + usage.outputTokens > 0) {
      this.#broken('L1', ticketId, 'it was answered from the cache, and an engine is said to have worked')
    }
    const isTold = outcome !== 'completed' && outcome !== 'cancelled'
    if (isTold !== (entry.refusal !== undefined)) {
      this.#broken('L1', ticketId, `its outcome is ${outcome}, with or without a reason`)
    }
    const { promptTokens, cachedTokens, outputTokens } = usage
    if (promptTokens < 0 || cachedTokens < 0 || outputTokens < 0 || cachedTokens > promptTokens) {
      this.#broken('L1', ticketId, `its usage cannot be: ${JSON.stringify(usage)}`)
    }
  }

  #storyOf(ticketId: string, what: string): Story | undefined {
    const story = this.#live.get(ticketId)
    if (story === undefined) this.#broken('L1', ticketId, `it ${what} while it was not alive`)
    return story
  }

  #broken(law: Violation['law'], ticketId: string, what: string): void {
    if (this.violations.length < VIOLATIONS_MAX) this.violations.push({ law, ticketId, what })
  }
}
