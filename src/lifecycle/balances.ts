import type { CancelTimer, Clock } from '../base/clock.ts'
import { withinTime } from '../base/within-time.ts'
import type { Settlement } from '../domain/ledger.ts'
import { scopesOf } from '../domain/ledger-scope.ts'
import type { Budgets } from '../policy/budgets/budgets.ts'
import { type HourSpend, Quota } from '../policy/budgets/quota.ts'
import type { Asking, QuotaLedger } from '../policy/budgets/scope-budget.ts'
import type { LedgerStore } from './ledger-ports.ts'

/**
 * What was used of each budget, as the ledger has it?
 *
 * A budget that is new here is asked for within the same turn of the event loop, together with the others that are, and
 * again every second while the database does not answer. Where several gateways write to one ledger, all budgets in
 * memory are asked for again every few seconds: so each learns what the others used, some seconds late.
 *
 * A balance is what the ledger has and what this process has used and the ledger not yet. Both are exact only while
 * nothing is written: reading waits for the keeper's turn to end.
 *
 * Bounds: one question at a time, of a thousand scopes at most; whoever waits does so for a second.
 */
export interface BalancesOptions {
  readonly clock: Clock
  readonly store: Pick<LedgerStore, 'balances' | 'hourlyBalances'>
  /** Runs a reading while nothing is written (`LedgerKeeper.between`). */
  readonly between: <T>(read: () => Promise<T>) => Promise<T>
  /** Other gateways write to the ledger, too. */
  readonly isShared: boolean
  readonly isStrict: boolean
  readonly complain: (problem: string) => void
}

export const BALANCES_DEFAULTS = {
  scopesMax: 1_000,
  retryUs: 1_000_000,
  refreshUs: 3_000_000,
  fetchUsMax: 1_000_000,
} as const

interface Waiting {
  readonly account: string
  readonly quota: Quota
}

export class Balances implements QuotaLedger {
  readonly isStrict: boolean
  readonly #options: BalancesOptions
  #waiting: Waiting[] = []
  #asking: Promise<void> | undefined
  #cancelTimer: CancelTimer | undefined
  #cancelRetry: CancelTimer | undefined
  #isAway = false
  #isStarted = false
  #isClosed = false
  #budgets: Budgets | undefined

  constructor(options: BalancesOptions) {
    this.#options = options
    this.isStrict = options.isStrict
  }

  ask(account: string, quota: Quota): void {
    this.#waiting.push({ account, quota })
    if (this.#isStarted) void this.#turn()
  }

  /** Lines that the ledger has now. */
  written(lines: readonly Settlement[]): void {
    const budgets = this.#budgets
    if (budgets === undefined) return
    for (const line of lines) {
      if (line.outcome === 'failed' || line.outcome === 'crashed') continue
      const hour = Math.floor(line.atMs / 3_600_000)
      const spend = { tokens: line.inputTokens + line.outputTokens, nano: line.priceNano }
      for (const account of scopesOf(line, line.model)) budgets.written(account, hour, spend)
    }
  }

  /**
   * Asks for what is waiting, and from now on for what comes. Resolves when the first answers are there or have failed.
   * `isExpected`: budgets will be asked for, so the database is opened now and not by the first request.
   */
  async start(budgets: Budgets, isExpected = false): Promise<void> {
    this.#budgets = budgets
    this.#isStarted = true
    if (isExpected) await this.#options.store.balances([], 0, 0).catch((error: unknown) => this.#fail(error))
    await this.#turn()
    if (this.#options.isShared) this.#refreshLater()
  }

  /** Waits for what is asked, for a second at most. */
  async fetch(asking: readonly Asking[]): Promise<boolean> {
    const { clock } = this.#options
    if (!asking.some((one) => one instanceof Quota && one.isAsking)) return true
    // Before the start nothing is asked, and while the database is away the next try comes by itself.
    if (!this.#isStarted || this.#isAway) return false
    // A turn that is under way may have been over for a quota that is new: the next one has it.
    const answered = this.#turn().then(() => this.#turn())
    await withinTime(clock, clock.now() + BALANCES_DEFAULTS.fetchUsMax, answered)
    return !asking.some(({ isAsking }) => isAsking)
  }

  close(): void {
    this.#isClosed = true
    this.#cancelTimer?.()
    this.#cancelRetry?.()
  }

  #refreshLater(): void {
    const { clock } = this.#options
    this.#cancelTimer = clock.at(clock.now() + BALANCES_DEFAULTS.refreshUs, () => {
      for (const [, quotas, account] of this.#budgets?.quotas() ?? []) {
        for (const quota of quotas) if (quota.isKnown) this.#waiting.push({ account, quota })
      }
      void this.#turn().then(() => {
        if (!this.#isClosed) this.#refreshLater()
      })
    })
  }

  /** One at a time; never rejects. */
  #turn(): Promise<void> {
    this.#asking ??= Promise.resolve()
      .then(() => this.#work())
      .finally(() => {
        this.#asking = undefined
        if (this.#waiting.length > 0 && !this.#isAway && !this.#isClosed) void this.#turn()
      })
    return this.#asking
  }

  async #work(): Promise<void> {
    while (this.#waiting.length > 0 && !this.#isClosed) {
      const some = this.#waiting.splice(0, BALANCES_DEFAULTS.scopesMax)
      try {
        await this.#options.between(() => this.#read(some))
        this.#isAway = false
      } catch (error) {
        // Those that are known are asked for again at the next refresh.
        this.#waiting.push(...some.filter(({ quota }) => quota.isAsking))
        this.#fail(error)
        return
      }
    }
  }

  /** Quotas that begin in the same hour are asked for together. */
  async #read(some: readonly Waiting[]): Promise<void> {
    const { clock, store } = this.#options
    const now = clock.now()
    const toHour = Math.floor(now / 3_600_000_000) + 2
    const groups = Map.groupBy(some, ({ quota }) => `${quota.isByHours}${quota.startHour(now)}`)
    for (const group of groups.values()) {
      const { quota: first } = group[0] as Waiting
      const fromHour = first.startHour(now)
      const accounts = [...new Set(group.map(({ account }) => account))]
      const rows = first.isByHours
        ? await store.hourlyBalances(accounts, fromHour, toHour)
        : (await store.balances(accounts, fromHour, toHour)).map((row) => ({ ...row, hour: fromHour }))
      const spent = Map.groupBy(
        rows.map(({ scope, hour, inputTokens, outputTokens, priceNano }): HourSpend & { readonly scope: string } => ({
          scope,
          hour,
          tokens: inputTokens + outputTokens,
          nano: Number(priceNano),
        })),
        ({ scope }) => scope,
      )
      for (const { account, quota } of group) {
        // The period has turned meanwhile: it is asked for again.
        if (!quota.restore(clock.now(), fromHour, spent.get(account) ?? []) && quota.isAsking)
          this.#waiting.push({ account, quota })
      }
    }
  }

  #fail(error: unknown): void {
    const { clock, complain } = this.#options
    if (!this.#isAway) {
      const why = error instanceof Error ? error.message : String(error)
      const then = this.isStrict
        ? 'Requests with hard budgets that are not known are refused until it answers.'
        : 'Budgets that are not known count from nothing until it answers.'
      complain(`The ledger does not say what was used: ${why} ${then}`)
    }
    this.#isAway = true
    if (this.#isClosed) return
    this.#cancelRetry?.()
    this.#cancelRetry = clock.at(clock.now() + BALANCES_DEFAULTS.retryUs, () => void this.#turn())
  }
}
