import { ChurningMap } from '../base/churning-map.ts'
import type { Entry, Settled } from '../domain/entry.ts'
import { isJudging } from '../domain/screening.ts'
import type { Screened } from '../domain/screening-entry.ts'
import type { Tenant } from '../domain/tenant.ts'

/**
 * Law L14 as far as a journal shows it: nothing is answered before its verdict. A ticket of a tenant with judges has no
 * first token before its verdict and does not complete without one; what is blocked does not complete; and where the turn
 * itself waits (`gate`), a ticket has no turn before its verdict, so that a blocked one reaches no engine.
 *
 * That text is rewritten before anybody sees it, and that every route is screened, a journal cannot show: tests of the
 * gateway do.
 */
interface Judging {
  readonly mustBeJudged: boolean
  turns: number
  screened: Screened | undefined
}

type Broken = (ticketId: string, what: string) => void

export class ScreenLaw {
  readonly #live = new ChurningMap<string, Judging>()
  /** Tenants with judges; undefined where tenants are not known: then only tickets that were judged are looked at. */
  readonly #judged: ReadonlySet<string> | undefined
  readonly #broken: Broken

  constructor(tenants: Iterable<Tenant> | undefined, broken: Broken) {
    this.#broken = broken
    this.#judged = tenants && new Set([...tenants].filter(hasJudges).map(({ id }) => id))
  }

  take(entry: Entry): void {
    if (this.#judged?.size === 0) return
    switch (entry.kind) {
      case 'arrived': {
        const mustBeJudged = this.#judged?.has(entry.tenantId) ?? false
        if (this.#judged === undefined || mustBeJudged)
          this.#live.set(entry.ticketId, { mustBeJudged, turns: 0, screened: undefined })
        return
      }
      case 'granted': {
        const judging = this.#live.get(entry.ticketId)
        if (judging !== undefined) judging.turns++
        return
      }
      case 'screened':
        this.#screened(entry)
        return
      case 'settled':
        this.#settled(entry)
        return
      default:
    }
  }

  #screened(entry: Screened): void {
    const judging = this.#live.get(entry.ticketId)
    // A verdict may come after its ticket has ended for another reason.
    if (judging === undefined) return
    if (judging.screened !== undefined) this.#broken(entry.ticketId, 'it has two verdicts')
    judging.screened = entry
    if (entry.join === 'gate' && judging.turns > 0) this.#broken(entry.ticketId, 'it had a turn before its verdict')
  }

  #settled({ ticketId, outcome, attempts, firstTokenAt }: Settled): void {
    const judging = this.#live.get(ticketId)
    if (judging === undefined) return
    this.#live.delete(ticketId)
    const { screened, mustBeJudged } = judging
    if (screened === undefined) {
      if (mustBeJudged && (outcome === 'completed' || firstTokenAt !== undefined))
        this.#broken(ticketId, 'it was answered without a verdict')
      return
    }
    if (firstTokenAt !== undefined && firstTokenAt < screened.at)
      this.#broken(ticketId, `its first token came at ${firstTokenAt}, and its verdict at ${screened.at}`)
    if (screened.verdict !== 'blocked') return
    if (outcome === 'completed' || firstTokenAt !== undefined) this.#broken(ticketId, 'it was blocked, and answered')
    if (screened.join === 'gate' && attempts > 0) this.#broken(ticketId, 'it was blocked, and reached an engine')
  }
}

const hasJudges = ({ screening }: Tenant): boolean =>
  screening?.rules.some(({ screen, direction }) => direction === 'input' && isJudging(screen)) === true
