import { leftSpoolFolders } from '../assembly/fs-spool-folders.ts'
import { AuditCopier, type CopierView } from '../audit/audit-copier.ts'
import type { FsAuditLog } from '../audit/fs-audit-log.ts'
import { readChainEnd } from '../audit/fs-chain-state.ts'
import type { AuditCopyStore } from '../domain/audit-copy.ts'
import { listSegments } from '../spool/fs-segment.ts'
import { FsSpoolReader, type SpoolSource } from '../spool/fs-spool-reader.ts'

/** The chain's way into the database: the own one as it grows, and those of processes that are gone once. */
export interface CopyWorld {
  readonly path: string
  readonly log: FsAuditLog
  readonly store: AuditCopyStore
  readonly later: (ms: number, run: () => void) => () => void
  readonly complain: (problem: string) => void
  /** Name of the chain in a folder of the host. */
  readonly originOf: (folder: string) => string
}

const READER = 'copy'

export async function startCopy(world: CopyWorld): Promise<{ view(): CopierView; close(): Promise<void> }> {
  const { log } = world
  const copier = await copierOf(world, log.spool)
  copier.start()
  void copyLeft(world).catch((error: unknown) => world.complain(`audit: chains that were left: ${String(error)}`))
  return { view: () => copier.view(), close: () => copier.close() }
}

async function copierOf(world: CopyWorld, source: SpoolSource): Promise<AuditCopier> {
  const { store, later, complain, originOf } = world
  const reader = await FsSpoolReader.open(source, READER, complain)
  return new AuditCopier({ origin: originOf(source.folder), reader, store, later, complain })
}

/** Nothing is cut or added there: only what is whole is read. */
async function copyLeft(world: CopyWorld): Promise<void> {
  const { path, log, originOf } = world
  for await (const folder of leftSpoolFolders(path, log.spool.folder, process.pid)) {
    const end = await readChainEnd(folder, originOf(folder), log.publicKey)
    if (end.kind === 'broken') continue
    const segments = await listSegments(folder)
    const copier = await copierOf(world, { folder, committedSeq: end.tree.size, segments: () => segments })
    await copier.close()
  }
}
