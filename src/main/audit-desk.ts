import type { FsAuditLog } from '../audit/fs-audit-log.ts'
import type { EraseRequests } from '../audit/fs-erase-requests.ts'
import { chainFolders } from '../audit/fs-read-events.ts'
import { readSubjectKeys } from '../audit/fs-subject-keys.ts'
import type { FsWitness } from '../audit/fs-witness.ts'
import { openNames } from '../audit/open-names.ts'
import type { AuditCopyStore, CopiedEvent } from '../domain/audit-copy.ts'
import type { AuditDesk, EraseAsk } from '../gateway/routes/audit.ts'
import type { WitnessDesk } from '../gateway/routes/witness.ts'

/** The audit as administrators ask it. Keys of all chains of the host lie under one folder. */
export interface AuditDeskParts {
  readonly path: string
  readonly log: FsAuditLog
  readonly store: AuditCopyStore | undefined
  readonly erasures: EraseRequests
  readonly witness: FsWitness | undefined
  /** Newest checkpoints of the host's chains. */
  readonly notes: () => Promise<readonly string[]>
}

export class LiveAuditDesk implements AuditDesk, WitnessDesk {
  readonly #parts: AuditDeskParts

  constructor(parts: AuditDeskParts) {
    this.#parts = parts
  }

  get store(): AuditCopyStore | undefined {
    return this.#parts.store
  }

  async exchange(notes: readonly string[]): Promise<readonly string[]> {
    const { witness } = this.#parts
    if (witness === undefined) return []
    await witness.take(notes)
    return this.#parts.notes()
  }

  async sealsOf(tenant: string, what: 'user' | 'key', name: string): Promise<readonly string[]> {
    const tag = this.#parts.log.seals.tagOf(tenant, what, name)
    const seals: string[] = []
    for (const folder of await chainFolders(this.#parts.path))
      seals.push(...(await readSubjectKeys(folder, tag)).keys())
    return seals
  }

  async opened(events: readonly CopiedEvent[]): Promise<readonly object[]> {
    const keys = new Map<string, Buffer>()
    for (const folder of await chainFolders(this.#parts.path)) {
      for (const [id, key] of await readSubjectKeys(folder)) keys.set(id, key)
    }
    return events.map(({ line }) => openNames(line, keys))
  }

  exported(by: string, org: string | undefined, search: string, count: number): void {
    const decision = { outcome: 'searched', because: search === '' ? 'everything' : search }
    this.#parts.log.append({
      kind: 'data.exported',
      actor: { kind: 'admin', name: by },
      org,
      decision,
      detail: { count },
    })
  }

  async erase({ by, because, tenant, what, name }: EraseAsk): Promise<number> {
    const { log, erasures } = this.#parts
    const tag = log.seals.tagOf(tenant, what, name)
    // The other processes of the host find the request beside their chains.
    const elsewhere = await this.#countElsewhere(tag)
    await erasures.ask(tag)
    const keys = (await log.erase(tag)) + elsewhere
    const decision = { outcome: 'erased', because }
    log.append({ kind: 'erased', actor: { kind: 'admin', name: by }, tenant, decision, detail: { what, keys } })
    return keys
  }

  async #countElsewhere(tag: string): Promise<number> {
    let count = 0
    for (const folder of await chainFolders(this.#parts.path)) {
      if (folder !== this.#parts.log.spool.folder) count += (await readSubjectKeys(folder, tag)).size
    }
    return count
  }
}
