import type { AuditEvent } from '../domain/audit-event.ts'

/**
 * An event as its line in the spool: JSON with its fields in a fixed order, so that the same event is the same bytes
 * everywhere. Fields that say nothing are left out. Personal fields are sealed, text is a keyed hash.
 */
export interface LineStamp {
  readonly seq: number
  readonly atMs: number
  /** Which chain of the host. */
  readonly process: string
  /** Version of the settings in force, which stands before that of the event's own policy. */
  readonly version?: string | undefined
}

export interface AuditSeals {
  /** A name that can be read as long as its subject's key is kept. */
  seal(tenant: string, what: 'user' | 'key', name: string): string
  /** Hash of a text under the tenant's own key: a plain hash of a short prompt could be guessed. */
  hashText(tenant: string, text: string): string
}

/** Every line begins so: whoever verifies compares the number without parsing. */
export const lineHead = (seq: number): string => `{"v":1,"seq":${seq},`

export function auditLine(event: AuditEvent, stamp: LineStamp, seals: AuditSeals): string {
  const { seq, atMs, process, version } = stamp
  const { kind, actor, org, tenant, request, model, release, decision, screens, usage, cost, price, rung } = event
  const whose = tenant ?? ''
  return JSON.stringify({
    v: 1,
    seq,
    at: atMs,
    process,
    kind,
    actor: { kind: actor.kind, name: actor.kind === 'key' ? seals.seal(whose, 'key', actor.name) : actor.name },
    org,
    tenant,
    request,
    model,
    release,
    decision: decision && {
      outcome: decision.outcome,
      code: decision.code,
      because: decision.because,
      policy:
        version === undefined || decision.policy === undefined
          ? (decision.policy ?? version)
          : `${version} ${decision.policy}`,
    },
    screens: screens && { run: screens.run, skipped: screens.skipped, found: screens.found.map(foundOf) },
    usage: usage && { prompt: usage.prompt, cached: usage.cached, output: usage.output },
    cost,
    price,
    rung,
    user: event.user === undefined ? undefined : seals.seal(whose, 'user', event.user),
    key: event.key === undefined ? undefined : seals.seal(whose, 'key', event.key),
    text: event.text === undefined ? undefined : seals.hashText(whose, event.text),
    detail: event.detail,
  })
}

type Found = NonNullable<AuditEvent['screens']>['found'][number]

const foundOf = ({ screen, direction, category, action, count, score }: Found): Found => ({
  screen,
  direction,
  category,
  action,
  count,
  ...(score !== undefined && { score }),
})
