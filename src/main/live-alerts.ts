import { isOk, post } from '../backends/http-get.ts'
import { HttpUpstream } from '../backends/http-upstream.ts'
import { type Clock, secondsToUs, US_PER_MS } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import type { Entry } from '../domain/entry.ts'
import { NANO_PER_USD } from '../domain/ledger.ts'
import type { BudgetMarked } from '../domain/platform-entry.ts'
import type { LiveJournal } from '../telemetry/journal.ts'

/**
 * Tells a receiver of each mark that a budget passes. It is a subscriber of the journal, whose ring bounds what may wait
 * (`ALERTS_MAX`): a receiver that is slow or away delays nobody, and loses the oldest marks, which the journal counts.
 */
const ALERTS_MAX = 1_024
const TRIES_MAX = 3
const PAUSE_US = secondsToUs(2)

interface AlertWorld {
  readonly journal: Pick<LiveJournal, 'subscribe'>
  readonly clock: Clock
  readonly complain: (problem: string) => void
}

export function startAlerts({ alerts }: Pick<Config, 'alerts'>, { journal, clock, complain }: AlertWorld): void {
  const { webhookUrl, webhookTimeoutMs } = alerts
  if (webhookUrl === undefined) return
  const url = new URL(webhookUrl)
  let isComplained = false
  const send = async (entry: BudgetMarked): Promise<void> => {
    const json = JSON.stringify(bodyOf(entry))
    let why = ''
    for (let nth = 0; nth < TRIES_MAX; nth++) {
      if (nth > 0) await clock.sleep(PAUSE_US * nth)
      // Marks are rare: a connection that is kept would be closed by then.
      const upstream = new HttpUpstream({ url: url.origin, tls: undefined, auth: 'none' })
      const got = await post(upstream, url.pathname + url.search, json, webhookTimeoutMs)
      await upstream.close()
      if (isOk(got)) {
        isComplained = false
        return
      }
      why = got.status === 0 ? got.text : `it answered ${got.status}`
    }
    if (!isComplained) complain(`alerts.webhookUrl was not told of a budget's mark: ${why}`)
    isComplained = true
  }
  journal.subscribe(
    {
      name: 'alerts',
      kinds: new Set(['budget-marked']),
      take: (entry: Entry) => (entry.kind === 'budget-marked' ? send(entry) : undefined),
    },
    ALERTS_MAX,
  )
}

function bodyOf(entry: BudgetMarked): object {
  const { id, at, scope, scopeId, period, isHard, mark, usedNano, nanoMax, usedTokens, tokensMax, resetsAt } = entry
  const time = (instant: number): string => new Date(Math.floor(instant / US_PER_MS)).toISOString()
  return {
    object: 'spillway.budget_mark',
    id,
    at: time(at),
    scope,
    name: scopeId,
    period,
    kind: isHard ? 'hard' : 'soft',
    mark,
    ...(nanoMax !== undefined && { usd: { used: usedNano / NANO_PER_USD, limit: nanoMax / NANO_PER_USD } }),
    ...(tokensMax !== undefined && { tokens: { used: usedTokens, limit: tokensMax } }),
    resets_at: time(resetsAt),
  }
}
