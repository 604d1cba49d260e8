import { hash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type Instant, msToUs } from '../base/clock.ts'
import { fnv1a32 } from '../base/rng.ts'
import { readTraceparent, type TraceContext } from '../base/trace-context.ts'
import type { Request } from '../domain/request.ts'
import { BANDS, type Band, type Slo, type Tenant } from '../domain/tenant.ts'
import type { ChatBody } from '../wire/schemas.ts'
import type { Caller } from './authenticate.ts'
import type { FoundInBody } from './screen-body.ts'

/**
 * The terms on which a request is served: caller, band, bid, deadline and conversation, which every kind of request
 * has. Each wish of the client is clamped to what its tenant may ask for.
 */
export interface Asker {
  readonly id: string
  readonly body: Partial<
    Pick<ChatBody, 'spillway' | 'priority' | 'service_tier' | 'user' | 'prompt_cache_key' | 'safety_identifier'>
  >
  readonly headers: IncomingHttpHeaders
  readonly caller: Caller
  readonly now: Instant
  /** What the screens found in the body; absent where the tenant has none. */
  readonly found?: FoundInBody | undefined
}

type Terms = Pick<
  Request,
  | 'id'
  | 'tenant'
  | 'key'
  | 'band'
  | 'bid'
  | 'slo'
  | 'arrivedAt'
  | 'deadlineAt'
  | 'sessionHash'
  | 'endUser'
  | 'isCutOff'
  | 'hops'
  | 'origin'
  | 'modelsAllowed'
  | 'trace'
>

export function termsOf(asked: Asker): Terms {
  const { tenant, key, sentOn, models } = asked.caller
  const wishes = readWishes(asked)
  const slo = sloFor(tenant, wishes.ttftMs)
  return {
    id: asked.id,
    tenant,
    key,
    band: bandFor(asked.caller.bands ?? tenant.bands, wishes.band),
    bid: Math.min(Math.max(wishes.bid ?? 0, -tenant.bidMax), tenant.bidMax),
    slo,
    arrivedAt: asked.now,
    deadlineAt: asked.now + (wishes.deadlineMs === undefined ? slo.totalUs : msToUs(wishes.deadlineMs)),
    sessionHash: sessionHash(asked),
    endUser: endUserOf(asked),
    hops: sentOn?.hops,
    origin: sentOn?.origin,
    modelsAllowed: models,
    trace: traceOf(asked),
    isCutOff: (wishes.isCutOff ?? slo.isCutOff) === true ? true : undefined,
  }
}

function traceOf({ headers }: Asker): TraceContext | undefined {
  const header = headers['traceparent']
  return typeof header === 'string' ? readTraceparent(header) : undefined
}

/** Session names are cut at this many characters: enough to tell sessions apart, and no megabytes are hashed. */
const SESSION_CHARACTERS_MAX = 256

/**
 * Hash of the conversation, from the most exact name that the client gives: a session, the key of its cached prompt,
 * its user. The hash is salted with the tenant, so that users of the same name of two tenants differ (law L13), and
 * with nothing else, so that every process computes the same hash.
 */
function sessionHash({ body, headers, caller }: Asker): number | undefined {
  const named =
    headerText(headers['x-session-id']) || body.prompt_cache_key || body.safety_identifier || body.user || undefined
  return named === undefined
    ? undefined
    : fnv1a32(`${caller.tenant.id}\u0000session\u0000${named.slice(0, SESSION_CHARACTERS_MAX)}`)
}

/** Names of end users are cut at this many characters; a hash of the whole keeps those that are longer apart. */
const USER_CHARACTERS_MAX = 128

/** The end user, where the tenant has a budget for each. Names go to the database, which takes no control characters. */
function endUserOf({ body, caller }: Asker): string | undefined {
  const { allowance, orgAllowance } = caller.tenant
  const isWanted = (budgets: typeof allowance.budgets): boolean =>
    budgets?.some(({ isPerUser }) => isPerUser === true) === true
  if (!isWanted(allowance.budgets) && !isWanted(orgAllowance?.budgets)) return undefined
  const named = body.safety_identifier || body.user || undefined
  if (named === undefined) return undefined
  const plain = named.replaceAll(/[\p{Cc}\p{Cs}]/gu, ' ')
  if (plain.length <= USER_CHARACTERS_MAX) return plain
  return `${plain.slice(0, USER_CHARACTERS_MAX)}#${fnv1a32(named).toString(16)}`
}

/** Longest time that a client can ask for, a week in milliseconds: sums with it are exact, and no request lasts as long. */
const WISH_MS_MAX = 604_800_000

interface Wishes {
  readonly deadlineMs: number | undefined
  readonly isCutOff: boolean | undefined
  readonly ttftMs: number | undefined
  readonly bid: number | undefined
  readonly band: string | undefined
}

/** The client's wishes: from the body's `spillway` object, then our headers, then headers of other systems. */
function readWishes({ body, headers }: Asker): Wishes {
  const ours = body.spillway ?? undefined
  const deadlineMs = ours?.deadline_ms ?? positiveHeader(headers['x-spillway-deadline-ms'])
  return {
    deadlineMs: deadlineMs === undefined ? undefined : Math.min(deadlineMs, WISH_MS_MAX),
    // A deadline that the client set cuts its answer off; a promise of ours that is broken does not.
    isCutOff: ours?.cut_off ?? yesOrNo(headers['x-spillway-cut-off']) ?? (deadlineMs === undefined ? undefined : true),
    ttftMs: ours?.ttft_ms ?? positiveHeader(headers['x-spillway-ttft-ms']) ?? positiveHeader(headers['x-slo-ttft-ms']),
    // vLLM's priority has the opposite order: lower goes sooner.
    bid:
      ours?.bid ??
      finite(headers['x-spillway-bid']) ??
      (typeof body.priority === 'number' ? -body.priority : undefined),
    band: ours?.band ?? headerText(headers['x-spillway-band']) ?? bandOfTier(body.service_tier ?? undefined),
  }
}

export const headerText = (header: string | string[] | undefined): string | undefined =>
  typeof header === 'string' ? header : undefined

/** `Number` would take more: `0x10` for a deadline of 16 ms, and nothing at all for 0. */
const DECIMAL = /^[+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i

function finite(header: string | string[] | undefined): number | undefined {
  const text = headerText(header)
  const number = text !== undefined && DECIMAL.test(text) ? Number(text) : Number.NaN
  return Number.isFinite(number) ? number : undefined
}

function yesOrNo(header: string | string[] | undefined): boolean | undefined {
  return header === 'true' ? true : header === 'false' ? false : undefined
}

export function positiveHeader(header: string | string[] | undefined): number | undefined {
  const number = finite(header)
  return number !== undefined && number > 0 ? number : undefined
}

function bandOfTier(tier: string | undefined): string | undefined {
  if (tier === 'flex') return 'offline'
  return tier === 'priority' ? 'interactive' : undefined
}

/** The tenant's or key's own best band, if the client asks for none or for more than it may have. */
function bandFor(bands: readonly Band[], wanted: string | undefined): Band {
  const band = BANDS.find((known) => known === wanted && bands.includes(known))
  return band ?? (bands.includes('standard') ? 'standard' : (bands[0] ?? 'standard'))
}

/** A client may ask for a looser promise than its tenant has, never for a tighter one. */
function sloFor(tenant: Tenant, ttftMs: number | undefined): Slo {
  if (ttftMs === undefined) return tenant.slo
  return { ...tenant.slo, ttftUs: Math.max(msToUs(Math.min(ttftMs, WISH_MS_MAX)), tenant.slo.ttftUs) }
}

/** Knows a body again that is sent a second time. A long one would hold up others while it is hashed. */
export function askNameOf(raw: string | undefined): (() => string) | undefined {
  if (raw === undefined || raw.length > ASK_CHARS_MAX) return undefined
  let name: string | undefined
  return () => (name ??= hash('sha1', raw))
}

/** A millisecond of hashing at most. */
const ASK_CHARS_MAX = 262_144
