import type { AuditEvent, AuditTerms } from '../domain/audit-event.ts'
import type { Entry } from '../domain/entry.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { AuditTrail } from '../lifecycle/audit-ports.ts'
import { entryEvent } from './entry-event.ts'

/** The log as the trail needs it. */
export interface TrailLog {
  readonly isFull: boolean
  append(event: AuditEvent, version: string): number | undefined
  committed(seq: number, withinMs: number): Promise<boolean>
}

export interface TrailOptions {
  readonly log: TrailLog
  readonly terms: AuditTerms
  /** Name of the settings in force, which every decision carries. */
  readonly version: () => string
  readonly onFault: (error: unknown) => void
}

/** Longest wait for the disk before a strict tenant's request is refused. A healthy one takes 10 to 20 ms. */
const COMMIT_MS_MAX = 5_000

/** The audit as the story of a request sees it. */
export class LogTrail implements AuditTrail {
  readonly #options: TrailOptions
  /** The last event of each running request of strict tenants: as many as there are such requests. */
  readonly #last = new Map<string, number | undefined>()

  constructor(options: TrailOptions) {
    this.#options = options
  }

  write(event: AuditEvent): void {
    const { log, version, onFault } = this.#options
    try {
      const { request } = event
      const seq = log.append(event, version())
      if (request !== undefined && this.#last.has(request)) this.#last.set(request, seq)
    } catch (error) {
      // An audit that breaks changes no answer (law L11); the fault is counted.
      onFault(error)
    }
  }

  note(entry: Entry): void {
    const event = entryEvent(entry)
    if (event !== undefined) this.write(event)
  }

  refusalOf(tenant: Tenant): string | undefined {
    const { log, terms } = this.#options
    if (!(tenant.audit?.refusesWhenFull ?? terms.refusesWhenFull) || !log.isFull) return undefined
    return 'The audit is full, and this tenant is not served without it.'
  }

  isStrict(tenant: Tenant): boolean {
    return tenant.audit?.isStrict ?? this.#options.terms.isStrict
  }

  watch(requestId: string): void {
    this.#last.set(requestId, undefined)
  }

  async committed(requestId: string): Promise<boolean> {
    const seq = this.#last.get(requestId)
    if (seq === undefined) return false
    return this.#options.log.committed(seq, COMMIT_MS_MAX)
  }

  forget(requestId: string): void {
    this.#last.delete(requestId)
  }
}
