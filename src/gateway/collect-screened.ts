import type { Clock, Instant } from '../base/clock.ts'
import type { ScreeningTerms } from '../domain/screening.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { WireFault } from '../wire/openai-error.ts'
import type { ScreenedDialect } from '../wire/screening-exceptions.ts'
import { type CollectedBody, collectBody } from './collect-body.ts'
import type { Exchange } from './exchange.ts'
import { headerText } from './request-terms.ts'
import { type BodyScreens, blockFault, type FoundInBody, screenBody } from './screen-body.ts'
import type { RequestRules } from './to-request.ts'

/**
 * The body of a request that carries text, as everybody behind this line may see it: rewritten where the tenant's policy
 * wants that. Every route that takes text from a tenant collects its body here (law L14); a tenant without screens pays
 * for one comparison.
 */
export type CollectedText =
  | { readonly kind: 'ok'; readonly bytes: Buffer; readonly readAt?: Instant; readonly found?: FoundInBody }
  | { readonly kind: 'fault'; readonly fault: WireFault }
  | { readonly kind: 'gone' }

/** The parts of a route that collects text. */
export interface CollectDeps {
  readonly bodyBytesMax: number
  readonly rules: Pick<RequestRules, 'models' | 'finderOf' | 'names' | 'salt'>
  readonly clock?: Clock
}

export interface CollectAsk {
  readonly tenant: Tenant
  readonly dialect: ScreenedDialect
  /** The body becomes no request: what is blocked is refused here. */
  readonly isUnserved?: true
}

export function collectScreened(exchange: Exchange, deps: CollectDeps, ask: CollectAsk): Promise<CollectedText> {
  const { bodyBytesMax, clock } = deps
  const collected = collectBody(exchange, bodyBytesMax, clock === undefined ? {} : { clock })
  const terms = ask.tenant.screening
  return terms === undefined ? collected : screened(exchange, deps.rules, ask, terms, collected)
}

async function screened(
  exchange: Exchange,
  rules: CollectDeps['rules'],
  { tenant, dialect, isUnserved }: CollectAsk,
  terms: ScreeningTerms,
  collecting: Promise<CollectedBody>,
): Promise<CollectedText> {
  const collected = await collecting
  if (collected.kind !== 'ok') return collected
  const session = headerText(exchange.req.headers['x-session-id']) || undefined
  const made = screenBody(screensOf(rules), { dialect, tenantId: tenant.id, terms, session }, collected.bytes)
  const body = made instanceof Promise ? await made : made
  if (exchange.res.destroyed) return { kind: 'gone' }
  if (body.kind === 'fault') return body
  const fault = isUnserved === true ? blockFault(body.found.found) : undefined
  return fault === undefined ? { ...collected, bytes: body.bytes, found: body.found } : { kind: 'fault', fault }
}

export function screensOf({ models, finderOf, names, salt }: CollectDeps['rules']): BodyScreens {
  if (finderOf === undefined) throw new Error('a tenant is screened, and this server has no finder')
  return { finderOf, names, salt, isModel: (name) => models.resolve(name) !== undefined }
}
