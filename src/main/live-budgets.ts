import { type CancelTimer, type Clock, secondsToUs } from '../base/clock.ts'
import { withinTime } from '../base/within-time.ts'
import type { Config } from '../config/schema.ts'
import { toKeys, toTenants } from '../config/to-domain.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { reportBudgets } from '../lifecycle/report-budgets.ts'
import type { LiveJournal } from '../telemetry/journal.ts'
import { startAlerts } from './live-alerts.ts'
import type { LiveLedger } from './live-ledger.ts'

/**
 * Before the server is ready, the ledger has what an earlier life used, and the budgets of the file know it. A server
 * whose database is away is ready all the same after a while: its budgets are then not known, and `ledger.onUnknown` says
 * what that means. Budgets of what was made at run time are asked for when they are first used.
 */
const START_US_MAX = secondsToUs(10)

interface LedgerStart {
  readonly config: Config
  readonly clock: Clock
  readonly journal: LiveJournal
  readonly platform: Platform
  readonly complain: (problem: string) => void
}

const REPORT_US = secondsToUs(10)

/** Reports until it is called off. */
function reportEvery(clock: Clock, platform: Platform): CancelTimer {
  let cancel: CancelTimer = () => {}
  const next = (): void => {
    cancel = clock.at(clock.now() + REPORT_US, () => {
      reportBudgets(platform)
      next()
    })
  }
  next()
  return () => cancel()
}

/** Resolves before the server listens. */
export async function startLedger(
  ledger: LiveLedger,
  { config, clock, journal, platform, complain }: LedgerStart,
): Promise<{ close(): Promise<void> }> {
  const { budgets, standings } = platform.policies
  const tenants = new Map(toTenants(config).map((tenant) => [tenant.id, tenant]))
  let hasBudgets = false
  for (const { key } of toKeys(config)) {
    const tenant = tenants.get(key.tenantId)
    if (tenant === undefined) continue
    const { scopes, models, userBudgets } = standings.of({ tenant, key })
    if (userBudgets.length > 0) hasBudgets = true
    budgets.prepare(
      clock.now(),
      [...scopes, ...models.values()].filter(({ quotas }) => quotas !== undefined),
    )
  }
  if (budgets.quotas().next().done !== true) hasBudgets = true
  startAlerts(config, { journal, clock, complain })
  const stopReports = reportEvery(clock, platform)
  const running = {
    close() {
      stopReports()
      return ledger.close()
    },
  }
  if (ledger.parts.balances === undefined) {
    if (hasBudgets) complain('There is no ledger: budgets count from the start of this process (`ledger`, `store`).')
    return running
  }
  const started = ledger.start(budgets, hasBudgets)
  if (!hasBudgets) return running
  const { kind } = await withinTime(clock, clock.now() + START_US_MAX, started)
  if (kind === 'late') complain('The ledger has not said in time what was used of budgets (`ledger.onUnknown`).')
  return running
}
