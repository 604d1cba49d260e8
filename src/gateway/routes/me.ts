import { usToMs } from '../../base/clock.ts'
import type { Settled } from '../../domain/entry.ts'
import { NANO_PER_USD } from '../../domain/ledger.ts'
import { spanName } from '../../domain/spend-key.ts'
import type { Slo } from '../../domain/tenant.ts'
import type { ScopeStanding } from '../../policy/budgets/budgets.ts'
import type { Caller, KeyDirectory } from '../authenticate.ts'
import { callerFor } from '../check-call.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import type { TenancyAdmin, TenantCredential, TreeRecord, TreeStanding } from '../tenancy-admin.ts'
import { wireRefusal } from './explain.ts'
import { credentialOf, SELF_ROOT, shownRecord } from './tenancy.ts'

/**
 * GET /v1/spillway/me: what the caller may do, what it has left, and what it was refused last.
 *
 * For every key and token of a tenant, whether it manages or not. Its own key is shown always; the tenant's other keys to
 * those whose role reads the tree. Secrets are not known here; hashes are cut.
 */
export interface MeDeps {
  readonly keys: KeyDirectory
  readonly tenancy: TenancyAdmin
  readonly budgetsOf: (caller: Pick<Caller, 'tenant' | 'key'>) => readonly ScopeStanding[]
  readonly refusals: (ask: {
    readonly tenantId: string
    readonly limit: number
  }) => readonly Settled[] | Promise<readonly Settled[]>
}

/** Keys of the tenant in one answer; `GET /v1/spillway/keys` has all of them, page by page. */
const KEYS_SHOWN_MAX = 100
const REFUSALS_SHOWN_MAX = 20

export function meRoute({ keys, tenancy, budgetsOf, refusals }: MeDeps): Route {
  return {
    method: 'GET',
    path: `${SELF_ROOT}/me`,
    async handle(exchange) {
      const caller = callerFor(exchange, keys, {})
      if (caller === undefined) return
      const credential = credentialOf(exchange)
      const standing = credential === undefined ? undefined : await tenancy.standingOf(credential)
      const others = credential === undefined ? undefined : await keysOf(tenancy, credential, caller)
      const found = await refusals({ tenantId: caller.tenant.id, limit: REFUSALS_SHOWN_MAX })
      sendMe(exchange, {
        ...whoOf(caller, standing),
        ...termsOf(caller, standing),
        budgets: budgetsOf(caller).map(shownBudget),
        ...(others !== undefined && { keys: others.map(shownRecord) }),
        refusals: found.map(wireRefusal),
      })
    },
  }
}

const sendMe = (exchange: Exchange, me: object): void =>
  exchange.sendJson(200, JSON.stringify({ object: 'spillway.me', ...me }))

async function keysOf(
  tenancy: TenancyAdmin,
  credential: TenantCredential,
  { tenant }: Caller,
): Promise<readonly TreeRecord[] | undefined> {
  const desk = tenancy.asTenant(credential)
  const ask = { parentId: tenant.id, after: undefined, limit: KEYS_SHOWN_MAX }
  const sight = await desk?.list('key', ask)
  return sight?.kind === 'seen' ? sight.value : undefined
}

function whoOf({ tenant, key }: Caller, standing: TreeStanding | undefined): object {
  return {
    org: tenant.orgId,
    tenant: tenant.id,
    key: standing?.key === undefined ? { id: key.id, source: 'token' } : shownRecord(standing.key),
    role: standing?.role ?? null,
  }
}

function termsOf({ tenant, key, bands }: Caller, standing: TreeStanding | undefined): object {
  const { slo, contract, bidMax, queueUsMax } = tenant
  return {
    terms: standing?.terms ?? {},
    bands: bands ?? tenant.bands,
    weights: { org: tenant.orgWeight ?? null, tenant: tenant.weight, key: key.weight },
    slo: shownSlo(slo),
    contract,
    bidMax,
    waitMsMax: usToMs(queueUsMax),
  }
}

const shownSlo = ({ name, ttftUs, interTokenUs, totalUs }: Slo): object => ({
  name,
  ttftMs: usToMs(ttftUs),
  interTokenMs: usToMs(interTokenUs),
  totalMs: usToMs(totalUs),
})

/** A bound that is absent is none. */
function shownBudget({ scope, view }: ScopeStanding): object {
  const { requests, tokens, inFlight, quotas } = view
  const { concurrencyMax } = scope.allowance
  const shownBucket = (bucket: NonNullable<typeof requests>): object => ({
    limit: bucket.limit,
    remaining: bucket.remaining,
    // A bucket that is never filled again says so.
    resetMs: bucket.resetUs >= Number.MAX_SAFE_INTEGER ? null : Math.ceil(usToMs(bucket.resetUs)),
  })
  return {
    scope: scope.noun,
    ...(requests !== undefined && { requests: shownBucket(requests) }),
    ...(tokens !== undefined && { tokens: shownBucket(tokens) }),
    concurrency: { limit: concurrencyMax ?? null, running: inFlight },
    ...(quotas.length > 0 && { id: scope.id, budgets: quotas.map(shownQuota) }),
  }
}

/** Money in dollars; what running answers hold is not left. */
function shownQuota({ limit, used, held, isKnown, resetUs }: ScopeStanding['view']['quotas'][number]): object {
  const { period, nanoMax, tokensMax, isHard, model, marks } = limit
  const part = (most: number, usedOf: number, heldOf: number): object => ({
    limit: most,
    used: usedOf,
    held: heldOf,
    remaining: Math.max(0, most - usedOf - heldOf),
  })
  const usd = (nano: number): number => nano / NANO_PER_USD
  return {
    period: spanName(period),
    kind: isHard ? 'hard' : 'soft',
    ...(model !== undefined && { model }),
    ...(nanoMax !== undefined && { usd: part(usd(nanoMax), usd(used.nano), usd(held.nano)) }),
    ...(tokensMax !== undefined && { tokens: part(tokensMax, used.tokens, held.tokens) }),
    marks,
    resetMs: Math.ceil(usToMs(resetUs)),
    ...(!isKnown && { isKnown }),
  }
}
