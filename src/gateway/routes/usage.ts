import { type Clock, usToMs } from '../../base/clock.ts'
import type { LedgerStore, UsageAsk, UsageDimension, UsageRow } from '../../lifecycle/ledger-ports.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import type { AdminDirectory } from '../admin-directory.ts'
import type { KeyDirectory } from '../authenticate.ts'
import { callerFor } from '../check-call.ts'
import { fixedRetryUs } from '../error-table.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import type { TenancyAdmin } from '../tenancy-admin.ts'
import {
  type BucketResult,
  bucketPage,
  completionsResult,
  costsResult,
  pageEndOf,
  usageAnswer,
} from '../usage-answer.ts'
import {
  type BucketGroup,
  type BucketQuery,
  type BucketRules,
  readBucketQuery,
  readUsageQuery,
  USAGE_ROWS_MAX,
  type UsageFilter,
} from '../usage-query.ts'
import { adminRoute } from './admin.ts'
import { credentialOf, SELF_ROOT } from './tenancy.ts'

/**
 * Who used what, from the ledger's sums by the hour:
 *
 *   GET /v1/spillway/usage                     our own table
 *   GET /v1/organization/usage/completions     the same as OpenAI's clients know it, in buckets
 *   GET /v1/organization/costs                 likewise, in money
 *   GET /admin/v1/usage                        for operators: everybody's
 *
 * A tenant's key sees its own tenant; one whose role reads costs, its org. What is out of reach is answered as if nothing
 * had been used there. The answers ask no model and have no budget: who has spent all must see on what.
 */
export interface UsageDeps {
  readonly clock: Clock
  readonly keys: KeyDirectory
  readonly admins: AdminDirectory
  readonly tenancy: Pick<TenancyAdmin, 'costOrgOf'>
  /** Undefined where nothing is written down. */
  readonly ledger: () => Pick<LedgerStore, 'usage'> | undefined
}

/** Whose usage the caller may see; both absent: everybody's. */
type Reach = Pick<UsageAsk, 'orgId' | 'tenantId'>

const COMPLETIONS: BucketRules = { groups: ['project_id', 'api_key_id', 'model'], daysMax: 31 }
const COSTS: BucketRules = { groups: ['project_id', 'api_key_id', 'line_item'], daysMax: 180 }

export function usageRoutes(deps: UsageDeps): Route[] {
  const nowMs = (): number => Math.floor(usToMs(deps.clock.now()))
  const told = async (exchange: Exchange, reach: Reach): Promise<void> => {
    const query = readUsageQuery(queryOf(exchange), nowMs())
    if (query.kind === 'fault') {
      exchange.sendFault(query.fault)
      return
    }
    const { fromHour, toHour, by, filter, limit, skip } = query.value
    const ask = { fromHour, toHour, by, rowsMax: limit + 1, rowsSkip: skip }
    const rows = await rowsOf(deps, exchange, ask, filter, reach)
    if (rows !== undefined) exchange.sendJson(200, JSON.stringify(usageAnswer(query.value, rows)))
  }
  const bucketed = async (exchange: Exchange, reach: Reach, rules: BucketRules, resultOf: BucketResult) => {
    const query = readBucketQuery(queryOf(exchange), nowMs(), rules)
    if (query.kind === 'fault') {
      exchange.sendFault(query.fault)
      return
    }
    const rows = await rowsOf(deps, exchange, bucketAsk(query.value), query.value.filter, reach)
    if (rows === undefined) return
    if (rows.length > USAGE_ROWS_MAX) exchange.sendFault(TOO_MANY)
    else exchange.sendJson(200, JSON.stringify(bucketPage(query.value, rows, resultOf)))
  }
  const forTenants = (path: string, handle: (exchange: Exchange, reach: Reach) => Promise<void>): Route => ({
    method: 'GET',
    path,
    async handle(exchange) {
      const reach = reachOf(deps, exchange)
      if (reach !== undefined) await handle(exchange, reach)
    },
  })
  return [
    forTenants(`${SELF_ROOT}/usage`, told),
    forTenants('/v1/organization/usage/completions', (exchange, reach) =>
      bucketed(exchange, reach, COMPLETIONS, completionsResult),
    ),
    forTenants('/v1/organization/costs', (exchange, reach) => bucketed(exchange, reach, COSTS, costsResult)),
    adminRoute(deps.admins, 'GET', '/admin/v1/usage', async ({ exchange }) => {
      await told(exchange, {})
    }),
  ]
}

const queryOf = (exchange: Exchange): URLSearchParams =>
  new URL(exchange.req.url ?? '/', 'http://localhost').searchParams

/** Undefined after a refusal was sent. */
function reachOf({ keys, tenancy }: UsageDeps, exchange: Exchange): Reach | undefined {
  const caller = callerFor(exchange, keys, {})
  if (caller === undefined) return undefined
  const credential = credentialOf(exchange)
  const orgId = credential === undefined ? undefined : tenancy.costOrgOf(credential)
  return orgId === undefined ? { orgId: caller.tenant.orgId, tenantId: caller.tenant.id } : { orgId }
}

const TOO_MANY = invalidRequest(
  `This page has more than ${USAGE_ROWS_MAX} results. Ask for fewer buckets (limit) or groups (group_by).`,
  'limit',
  'invalid-value',
)

const DIMENSION_OF: Readonly<Record<BucketGroup, UsageDimension>> = {
  project_id: 'tenant',
  api_key_id: 'key',
  model: 'model',
  line_item: 'model',
}

function bucketAsk(query: BucketQuery): Omit<UsageAsk, keyof UsageFilter> {
  const { fromHour, width, groups } = query
  const by = [width === 1 ? 'hour' : 'day', ...groups.map((group) => DIMENSION_OF[group])] as const
  return { fromHour, toHour: pageEndOf(query), by, rowsMax: USAGE_ROWS_MAX + 1 }
}

/** Undefined after a refusal was sent. */
async function rowsOf(
  { ledger }: UsageDeps,
  exchange: Exchange,
  ask: Omit<UsageAsk, keyof UsageFilter>,
  filter: UsageFilter,
  reach: Reach,
): Promise<readonly UsageRow[] | undefined> {
  const store = ledger()
  if (store === undefined) {
    exchange.sendRefusal(LEDGER_OFF)
    return undefined
  }
  if (isOutside(filter.orgId, reach.orgId) || isOutside(filter.tenantId, reach.tenantId)) return []
  try {
    return await store.usage({ ...ask, ...filter, ...reach, ...tenantIn(filter, reach) })
  } catch {
    exchange.sendRefusal({ ...LEDGER_AWAY, retryAfterUs: fixedRetryUs('ledger-unavailable') })
    return undefined
  }
}

const isOutside = (asked: string | undefined, bound: string | undefined): boolean =>
  asked !== undefined && bound !== undefined && asked !== bound

/** Within an org the caller may name a tenant. */
const tenantIn = (filter: UsageFilter, reach: Reach): Pick<UsageAsk, 'tenantId'> => ({
  tenantId: reach.tenantId ?? filter.tenantId,
})

const LEDGER_OFF = {
  code: 'ledger-off',
  because: 'it is not written down here who used what',
  blame: 'request',
  retryAfterUs: undefined,
} as const

const LEDGER_AWAY = {
  code: 'ledger-unavailable',
  because: 'the ledger’s database does not answer',
  blame: 'platform',
} as const
