import { usToMs } from '../../base/clock.ts'
import type { KeptOutput, OutputAsk, OutputPair } from '../../domain/output-pair.ts'
import type { AdminDirectory } from '../admin-directory.ts'
import type { Route } from '../http-server.ts'
import { adminRoute } from './admin.ts'
import type { AuditDesk } from './audit.ts'

/**
 * `GET /admin/v1/rollout-outputs` (`model`, `tenant`, `limit`): answers of shadows beside those that clients got, newest
 * first, of tenants whose terms allow it. For administrators alone, because it is text of tenants; each call is an event of
 * the audit, one for each org whose text it told.
 */
export interface OutputDeps {
  readonly admins: AdminDirectory
  /** Undefined where nothing is audited. */
  readonly desk: () => Pick<AuditDesk, 'exported'> | undefined
  readonly outputs: (ask: OutputAsk) => Promise<readonly OutputPair[]>
}

const LIMIT_DEFAULT = 10
/** About half a megabyte. */
const LIMIT_MAX = 50

export function outputsRoute({ admins, desk, outputs }: OutputDeps): Route {
  return adminRoute(admins, 'GET', '/admin/v1/rollout-outputs', async ({ by, query }) => {
    const [model, tenantId] = [query.get('model') ?? undefined, query.get('tenant') ?? undefined]
    const wanted = Math.trunc(Number(query.get('limit') ?? LIMIT_DEFAULT)) || LIMIT_DEFAULT
    const pairs = await outputs({ model, tenantId, limit: Math.min(LIMIT_MAX, Math.max(1, wanted)) })
    const orgs = new Map<string | undefined, number>()
    for (const { orgId } of pairs) orgs.set(orgId, (orgs.get(orgId) ?? 0) + 1)
    if (orgs.size === 0) orgs.set(undefined, 0)
    for (const [org, count] of orgs) desk()?.exported(by, org, `outputs of shadows of ${model ?? 'all models'}`, count)
    return { object: 'list', data: pairs.map(wirePair) }
  })
}

function wirePair({ at, ticketId, tenantId, model, primary, shadow, difference }: OutputPair): object {
  return {
    request: ticketId,
    at: new Date(usToMs(at)).toISOString(),
    tenant: tenantId,
    model,
    primary: wireOutput(primary),
    shadow: { ...wireOutput(shadow), outcome: shadow.outcome },
    difference: difference && {
      equal: difference.isEqual,
      same_finish_reason: difference.isSameFinish,
      first_difference_at: difference.firstAt ?? null,
      same_words_ratio: rounded(difference.sameWordsRatio),
      length_ratio: rounded(difference.lengthRatio),
      ...(difference.isJson && { json: difference.isJson }),
    },
  }
}

const wireOutput = ({ releaseId, text, length, finishReason }: KeptOutput): object => ({
  release: releaseId,
  text,
  length,
  finish_reason: finishReason,
})

const rounded = (ratio: number): number => Math.round(ratio * 1_000) / 1_000
