import type { AuditEvent } from '../domain/audit-event.ts'

/** Events that were lost since the last gap was recorded: how many, of whom, and when. */
export class GapCount {
  #count = 0
  #total = 0
  #fromMs = 0
  #toMs = 0
  readonly #tenants = new Map<string, number>()

  /** Not yet recorded. */
  get count(): number {
    return this.#count
  }

  /** Since the start. */
  get total(): number {
    return this.#total
  }

  lose(tenant: string | undefined, atMs: number): void {
    if (this.#count === 0) this.#fromMs = atMs
    this.#count++
    this.#total++
    this.#toMs = atMs
    const name = tenant !== undefined && (this.#tenants.has(tenant) || this.#tenants.size < TENANTS_MAX) ? tenant : ''
    this.#tenants.set(name, (this.#tenants.get(name) ?? 0) + 1)
  }

  /** The event that records the gap; from now on a new one is counted. */
  take(): AuditEvent {
    const tenants = Array.from(this.#tenants, ([tenant, count]) => `${tenant === '' ? 'others' : tenant}: ${count}`)
    const detail = { events: this.#count, fromMs: this.#fromMs, toMs: this.#toMs, tenants }
    this.#count = 0
    this.#tenants.clear()
    const decision = { outcome: 'lost', because: 'the audit was full' }
    return { kind: 'gap', actor: { kind: 'platform', name: 'audit' }, decision, detail }
  }

  /** The gap could not be recorded after all. */
  putBack({ detail }: AuditEvent): void {
    this.#count += Number(detail?.['events'] ?? 0)
    this.#fromMs = Number(detail?.['fromMs'] ?? 0)
  }
}

/** Tenants that one gap names; the others are counted together. */
const TENANTS_MAX = 64
