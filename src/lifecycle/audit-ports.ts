import type { AuditEvent } from '../domain/audit-event.ts'
import type { Entry } from '../domain/entry.ts'
import type { Tenant } from '../domain/tenant.ts'

/**
 * What was decided, and by whom: written so that a later change of the record shows. Types only.
 *
 * Obligations: nothing here throws or waits. What cannot be written is counted, and recorded as a gap when there is room
 * again. Whether it may change an outcome is said by the tenant's terms alone.
 */
export interface AuditTrail {
  /** Writes an event about a request. `begun` events are for strict tenants. */
  write(event: AuditEvent): void
  /** An entry of the journal that the audit may keep: changes by administrators, by the ladder, of budgets. */
  note(entry: Entry): void
  /** Why the tenant's requests are refused now; undefined: they are not. */
  refusalOf(tenant: Tenant): string | undefined
  isStrict(tenant: Tenant): boolean
  /** Whether events about this request are on the disk will be asked. */
  watch(requestId: string): void
  /** True when everything that was written about the request is on the disk; false when it could not be in time. */
  committed(requestId: string): Promise<boolean>
  /** Nothing more will be asked about the request. */
  forget(requestId: string): void
}
