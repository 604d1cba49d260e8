import { maskFreeText } from '../base/mask-free-text.ts'
import type { AuditEvent } from '../domain/audit-event.ts'
import type { AuditedScreens } from '../domain/audited-screens.ts'
import type { Settled } from '../domain/entry.ts'
import type { Refusal } from '../domain/outcome.ts'
import { FULL_RUNG } from '../domain/plan.ts'
import type { ScreenFinding } from '../domain/screening.ts'
import type { AuditTrail } from './audit-ports.ts'
import type { Platform } from './platform.ts'
import type { Sink } from './ports.ts'
import { settledSpend } from './spending.ts'
import { StrictSink } from './strict-sink.ts'
import type { Ticket } from './ticket.ts'

/**
 * A request in the audit: one event at its end, with what was decided and why. A tenant whose audit is strict has one at
 * its first turn, too, and gets no byte before that is on the disk. Where nothing is audited, each of these functions
 * is one look at `world.audit`.
 *
 * Not in the audit: the text. The trail makes a keyed hash of the prompt, and keeps that.
 */

/** A full audit refuses requests of tenants that would rather not be served than not be recorded. */
export function refuseUnaudited({ world }: Platform, { request }: Ticket): Refusal | undefined {
  const because = world.audit?.refusalOf(request.tenant)
  return because === undefined ? undefined : unauditedRefusal(because)
}

/** The sink of the answer: for strict tenants, one that opens when the decision is on the disk. */
export function auditedSink(platform: Platform, ticket: Ticket, sink: Sink): Sink {
  const { audit } = platform.world
  const { tenant, errand } = ticket.request
  if (audit === undefined || errand !== undefined || !audit.isStrict(tenant)) return sink
  audit.watch(ticket.id)
  return new StrictSink(sink, {
    committed() {
      if (ticket.attempts === 0 && ticket.phase !== 'settled') auditBegun(platform, ticket)
      return audit.committed(ticket.id)
    },
    refuse: () => ticket.cancellation.cancel(UNAUDITED),
    refusal: unauditedRefusal(),
  })
}

/** At the first turn, or with an answer that was known already. */
export function auditBegun({ world }: Platform, ticket: Ticket): void {
  const { audit } = world
  const { tenant, errand } = ticket.request
  if (audit === undefined || ticket.attempts > 1 || errand !== undefined || !audit.isStrict(tenant)) return
  const because = ticket.cached === undefined ? 'admitted' : 'known already'
  const decision = { outcome: 'begun', because, policy: policyOf(ticket) }
  const rung = ticket.admitted?.plan.rung.name ?? FULL_RUNG.name
  const release = ticket.admitted?.plan.releaseId ?? ticket.release?.release.id
  audit.write({ kind: 'inference.begun', ...partiesOf(ticket), release, decision, rung, text: textOf(ticket) })
}

/** `answerFindings`: what the answer's screen found. */
export function auditSettled(
  { world }: Platform,
  ticket: Ticket,
  settled: Settled,
  answerFindings: readonly ScreenFinding[],
): void {
  const { audit } = world
  if (audit === undefined) return
  const screens = screensOf(ticket, answerFindings)
  if (screens !== undefined) auditScreens(audit, ticket, screens)
  const { outcome, because, refusal, usage, cost, rung, releaseId, servedModel } = settled
  const { errand } = ticket.request
  audit.write({
    kind: 'inference.settled',
    ...partiesOf(ticket),
    release: releaseId,
    decision: { outcome, code: refusal?.code, because: told(because), policy: policyOf(ticket) },
    screens,
    usage: {
      prompt: Math.round(usage.promptTokens),
      cached: Math.round(usage.cachedTokens),
      output: Math.round(usage.outputTokens),
    },
    cost: Math.round(cost),
    price: settledSpend(ticket, outcome, usage).nano,
    rung,
    text: textOf(ticket),
    ...detailOf(servedModel === ticket.request.model ? undefined : servedModel, errand?.kind),
  })
}

/** Why the platform calls off a ticket whose decision could not be written. */
export const UNAUDITED = 'audit-unavailable'

const NOT_WRITTEN =
  'The decision on this request could not be written to the audit, without which its tenant is not served.'

export const unauditedRefusal = (because: string = NOT_WRITTEN): Refusal => ({
  code: 'audit-unavailable',
  because,
  blame: 'platform',
  retryAfterUs: 1_000_000,
})

/** Reasons should have no text of clients; what is between quotation marks might be some. */
const told = (because: string): string => (because === 'finished' ? because : maskFreeText(because))

type Parties = Pick<AuditEvent, 'actor' | 'org' | 'tenant' | 'request' | 'model' | 'user'>

function partiesOf({ id, request }: Ticket): Parties {
  const { tenant, key, model, endUser, errand } = request
  const actor = errand === undefined ? ({ kind: 'key', name: key.id } as const) : PLATFORM
  return { actor, org: tenant.orgId, tenant: tenant.id, request: id, model, user: endUser }
}

const PLATFORM = { kind: 'platform', name: 'errand' } as const

const policyOf = ({ request }: Ticket): string | undefined => request.screening?.terms.version

function screensOf(
  { request, check, passageFindings }: Ticket,
  answered: readonly ScreenFinding[],
): AuditedScreens | undefined {
  const { screening } = request
  if (screening === undefined) return undefined
  const { skipped = [], findings = [] } = check?.verdict ?? {}
  return {
    run: screening.terms.rules.map(({ screen, direction }) => `${screen}:${direction}`),
    skipped: [...skipped, ...screening.unscreened],
    found: [...screening.found, ...findings, ...passageFindings, ...answered],
  }
}

/** What screens did about a request and its answer, beside counting. */
function auditScreens(audit: AuditTrail, ticket: Ticket, screens: AuditedScreens): void {
  const found = screens.found.filter(({ action }) => action !== 'observe')
  if (found.length === 0 && screens.skipped.length === 0) return
  const outcome = ACTIONS.find((action) => found.some((finding) => finding.action === action)) ?? 'skipped'
  const because = ticket.check?.verdict?.because ?? found.map(({ category }) => category).join(', ')
  const decision = { outcome, because: told(because), policy: policyOf(ticket) }
  audit.write({ kind: 'screen.acted', ...partiesOf(ticket), decision, screens: { ...screens, found } })
}

/** The gravest first. */
const ACTIONS = ['block', 'redact', 'flag'] as const

/** As the client wrote it, after redaction. A transit's bytes are not read. */
function textOf({ request }: Ticket): string | undefined {
  const { text } = request
  return text === undefined ? undefined : (text.raw ?? JSON.stringify(text.body))
}

function detailOf(servedModel: string | undefined, errand: string | undefined): Pick<AuditEvent, 'detail'> {
  if (servedModel === undefined && errand === undefined) return {}
  return { detail: { ...(servedModel !== undefined && { servedModel }), ...(errand !== undefined && { errand }) } }
}
