/** The searchable copy of the audit: never the truth, which is the chain. */

export interface CopiedEvent {
  /** The chain, and the event's number in it. */
  readonly origin: string
  readonly seq: number
  readonly atMs: number
  readonly kind: string
  readonly org: string | undefined
  readonly tenant: string | undefined
  readonly request: string | undefined
  /** Ids of the keys that the event's names are sealed with. */
  readonly seals: readonly string[]
  /** The event as it lies in the chain. */
  readonly line: string
}

/** What is searched for; absent parts ask for all. Newest first. */
export interface AuditSearch {
  readonly org?: string | undefined
  readonly tenant?: string | undefined
  /** `key` is all of `key.*`. */
  readonly kind?: string | undefined
  readonly request?: string | undefined
  /** Events with one of these seals. */
  readonly seals?: readonly string[] | undefined
  readonly fromMs: number
  readonly toMs: number
  /** The last event of the page before. */
  readonly after?: { readonly atMs: number; readonly origin: string; readonly seq: number } | undefined
  readonly limit: number
}

export interface AuditCopyStore {
  /** The same events given twice are there once. */
  write(events: readonly CopiedEvent[]): Promise<void>
  search(search: AuditSearch): Promise<readonly CopiedEvent[]>
  /** Removes events that were before; answers how many went. */
  prune(beforeMs: number, eventsMax: number): Promise<number>
}
