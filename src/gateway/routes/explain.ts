import { usToMs } from '../../base/clock.ts'
import type { Entry, Settled } from '../../domain/entry.ts'
import type { Settlement } from '../../domain/ledger.ts'
import { usdText } from '../../domain/usd-text.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import type { AdminDirectory } from '../admin-directory.ts'
import type { KeyDirectory } from '../authenticate.ts'
import { callerFor } from '../check-call.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { adminRoute } from './admin.ts'

/**
 * What happened to a request, and which requests were not answered:
 *
 *   GET /spillway/requests/ID, /admin/v1/requests/ID     all journal entries of a ticket, with their reasons
 *   GET /spillway/refusals, /admin/v1/refusals           the last refusals, the newest first (`limit`, `tenant`)
 *
 * A tenant's key sees its own requests only; another tenant's ticket gets the same answer as an unknown one. An
 * administrator's key sees all of them, under both paths.
 */
export interface ExplainDeps {
  readonly keys: KeyDirectory
  readonly admins: AdminDirectory
  /** As this gateway or another one of its cell has it. */
  readonly storyOf: (ticketId: string) => Promise<readonly Entry[] | undefined>
  readonly refusals: (ask: {
    readonly tenantId: string | undefined
    readonly limit: number
  }) => Promise<readonly Settled[]>
  /** The ticket's line in the ledger, which is written when its cost is final; undefined where there is none. */
  readonly lineOf: (ticketId: string) => Promise<Settlement | undefined> | undefined
}

export function explainRoutes({ keys, admins, storyOf, refusals, lineOf }: ExplainDeps): Route[] {
  const explained = async (exchange: Exchange, ticketId: string, seer: Seer): Promise<void> => {
    const story = await storyOf(ticketId)
    const isSeen = story !== undefined && (seer.tenantId === undefined || story.some((entry) => isOf(entry, seer)))
    if (isSeen) {
      // Without the ledger the story is told all the same.
      const line = await lineOf(ticketId)?.catch(() => undefined)
      exchange.sendJson(200, storyBody(ticketId, story, line))
    } else exchange.sendFault(invalidRequest(NOT_REMEMBERED, null, 'request-not-found'))
  }
  const listed = async (exchange: Exchange, seer: Seer): Promise<void> => {
    const query = new URL(exchange.req.url ?? '/', 'http://localhost').searchParams
    const tenantId = seer.tenantId ?? query.get('tenant') ?? undefined
    const found = await refusals({ tenantId, limit: limitOf(query.get('limit')) })
    const data = found.map(wireRefusal)
    exchange.sendJson(200, JSON.stringify({ object: 'list', data }))
  }
  const forBoth = (path: string, handle: (exchange: Exchange, rest: string, seer: Seer) => Promise<void>): Route => ({
    method: 'GET',
    path,
    async handle(exchange, rest) {
      const seer = seerOf(keys, admins, exchange)
      if (seer !== undefined) await handle(exchange, rest, seer)
    },
  })
  return [
    forBoth('/spillway/requests/*', explained),
    forBoth('/spillway/refusals', (exchange, _rest, seer) => listed(exchange, seer)),
    adminRoute(admins, 'GET', '/admin/v1/requests/*', ({ exchange, rest }) => explained(exchange, rest, EVERYTHING)),
    adminRoute(admins, 'GET', '/admin/v1/refusals', ({ exchange }) => listed(exchange, EVERYTHING)),
  ]
}

/** Whose requests the caller may see; undefined: everybody's. */
interface Seer {
  readonly tenantId: string | undefined
}

const EVERYTHING: Seer = { tenantId: undefined }

/** Undefined after a refusal was sent. */
function seerOf(keys: KeyDirectory, admins: AdminDirectory, exchange: Exchange): Seer | undefined {
  const admin = admins.whoIs(exchange)
  if (typeof admin === 'string') return EVERYTHING
  if (admin.code !== 'not-admin') {
    // A key that nobody knows was counted as a failed one already.
    exchange.sendRefusal(admin)
    return undefined
  }
  const caller = callerFor(exchange, keys, {})
  return caller && { tenantId: caller.tenant.id }
}

const isOf = (entry: Entry, { tenantId }: Seer): boolean => 'tenantId' in entry && entry.tenantId === tenantId

const NOT_REMEMBERED =
  'No such request is remembered. Each gateway remembers the last 1,000 requests, at most 100 of each second; a tenant’s key sees its own only.'

/** Refusals in one answer, for a caller that does not say, and the most for any: about 300 KB. */
const LIMIT_DEFAULT = 20
const LIMIT_MAX = 500

const limitOf = (text: string | null): number =>
  Math.min(LIMIT_MAX, Math.max(1, Math.trunc(Number(text ?? LIMIT_DEFAULT)) || LIMIT_DEFAULT))

/** A refusal as clients see it. */
export function wireRefusal({
  at,
  ticketId,
  tenantId,
  model,
  band,
  rung,
  outcome,
  refusal,
  arrivedAt,
}: Settled): object {
  return {
    request: ticketId,
    at: new Date(usToMs(at)).toISOString(),
    tenant: tenantId,
    model,
    band,
    rung,
    outcome,
    code: refusal?.code,
    because: refusal?.because,
    blame: refusal?.blame,
    after_ms: Math.round(usToMs(at - arrivedAt)),
    retry_after_ms: refusal?.retryAfterUs === undefined ? null : Math.ceil(usToMs(refusal.retryAfterUs)),
    detail: refusal?.detail ?? {},
  }
}

const storyBody = (id: string, story: readonly Entry[], line: Settlement | undefined): string =>
  JSON.stringify({
    object: 'spillway.request',
    id,
    entries: story.map(shownEntry),
    ...(line !== undefined && { ledger: shownLine(line) }),
  })

const shownLine = ({ priceNano, priceVersion, costNano }: Settlement): object => ({
  price_usd: usdText(BigInt(priceNano)),
  price_list: priceVersion,
  cost_usd: usdText(BigInt(costNano)),
})

/** The entry with typed arrays as plain arrays, which JSON shows better, and without the names of the prompt's blocks. */
export function shownEntry(entry: Entry): object {
  if (entry.kind === 'arrived') {
    const { shape: _, ...told } = entry
    return told
  }
  if (entry.kind !== 'settled' || entry.gaps === undefined) return entry
  const { counts, sumUs, maxUs } = entry.gaps
  return { ...entry, gaps: { counts: [...counts], sumUs, maxUs } }
}
