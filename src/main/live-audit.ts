import { type TakenFolder, takeSpoolFolder } from '../assembly/fs-spool-folders.ts'
import type { LiveStore } from '../assembly/live-store.ts'
import { LogTrail } from '../audit/audit-trail.ts'
import { ENTRY_KINDS } from '../audit/entry-event.ts'
import { type AuditKey, openAuditKey } from '../audit/fs-audit-key.ts'
import { FsAuditLog } from '../audit/fs-audit-log.ts'
import { EraseRequests } from '../audit/fs-erase-requests.ts'
import { readHeadNotes } from '../audit/fs-heads.ts'
import { FsWitness } from '../audit/fs-witness.ts'
import { headOf, NoteSigner, type PeerHead, verifierKeyOf } from '../audit/signed-note.ts'
import { SinkQueue } from '../audit/sink-queue.ts'
import { type CancelTimer, type Clock, msToUs, secondsToUs, usToMs } from '../base/clock.ts'
import { configVersion } from '../config/config-version.ts'
import { STORE_PATH } from '../config/defaults.ts'
import type { Config } from '../config/schema.ts'
import type { AuditDesk } from '../gateway/routes/audit.ts'
import type { WitnessDesk } from '../gateway/routes/witness.ts'
import type { AuditTrail } from '../lifecycle/audit-ports.ts'
import { SqlAuditStore } from '../store/sql-audit-store.ts'
import type { LiveJournal } from '../telemetry/journal.ts'
import { LiveAuditDesk } from './audit-desk.ts'
import { startCopy } from './live-audit-copy.ts'
import { makeSinks } from './live-audit-sinks.ts'

/** The audit of a running server: a trail for the story, a log on the disk, and what keeps both. */
export interface LiveAudit {
  /** Empty where nothing is audited. */
  readonly parts: { readonly audit?: AuditTrail }
  /** For the routes; undefined where nothing is audited. */
  readonly desk: (AuditDesk & WitnessDesk) | undefined
  /** Settings in force: from now on decisions carry their version. */
  follow(settings: () => Config): void
  /** The configuration was read again. */
  reloaded(summary: string, reason: { readonly by: string; readonly because: string }): void
  /** What is worth saying beside readiness; undefined when all is well. */
  detail(): string | undefined
  close(): Promise<void>
}

export interface AuditWorld {
  readonly clock: Clock
  readonly journal: Pick<LiveJournal, 'tap' | 'record'>
  readonly store: Pick<LiveStore, 'database' | 'isDurable'>
  readonly complain: (problem: string) => void
  readonly print: (line: string) => void
}

const DAY_MS = 86_400_000
const REPORT_US = secondsToUs(1)
const PRUNE_US = secondsToUs(3_600)
const PRUNE_EVENTS = 10_000
/** Chains that are left as they are because their end is not that of their last checkpoint. */
const BROKEN_MAX = 16

export const auditPathOf = ({ audit, store }: Pick<Config, 'audit' | 'store'>): string =>
  audit.path ?? `${store.path.replace(/^memory:$/, STORE_PATH)}.audit`

export async function openLiveAudit(config: Config, world: AuditWorld): Promise<LiveAudit> {
  const { clock, journal } = world
  let settings = (): Config => config
  const version = versionOf(config, () => settings())
  const tellConfig = (summary: string, { by, because }: { by: string; because: string }): void =>
    journal.record({ kind: 'config-changed', at: clock.now(), by, because, summary, version: version() })
  const common: Pick<LiveAudit, 'follow' | 'reloaded'> = {
    follow(inForce) {
      settings = inForce
    },
    reloaded(summary, reason) {
      const because = `configuration read again: ${summary}`
      journal.record({ kind: 'platform-changed', at: clock.now(), state: 'ready', because })
      tellConfig(summary, reason)
    },
  }
  if (!config.audit.enabled) {
    return { ...common, parts: {}, desk: undefined, detail: () => undefined, close: () => Promise.resolve() }
  }
  const running = await runAudit(config, { ...world, version, settings: () => settings() })
  tellConfig('read at the start', { by: 'config', because: 'start' })
  return { ...common, ...running }
}

interface RunningWorld extends AuditWorld {
  readonly version: () => string
  readonly settings: () => Config
}

async function runAudit(config: Config, world: RunningWorld): Promise<Omit<LiveAudit, 'follow' | 'reloaded'>> {
  const { audit } = config
  const { clock, journal, complain, version } = world
  const path = auditPathOf(config)
  const nowMs = (): number => Math.floor(usToMs(clock.now()))
  const later = (ms: number, run: () => void): CancelTimer => clock.at(clock.now() + msToUs(ms), run)
  const onConflict = (origin: string, because: string): void => {
    complain(`audit: the chain ${origin} of another gateway contradicts itself: ${because}.`)
    log.append({ kind: 'gap', actor: AUDIT, decision: { outcome: 'conflict', because }, detail: { chain: origin } })
  }
  const witness = audit.witness ? new FsWitness({ path, nowMs, onConflict }) : undefined
  await witness?.start()
  const siblings = new Siblings(path)
  const queues = makeSinks(config, { ...world, witness }).map((sink) => new SinkQueue({ sink, later, complain }))
  const { log, taken } = await openChain(config, {
    ...world,
    path,
    heads: () => [...siblings.heads, ...(witness?.heads() ?? [])],
    onCheckpoint(note) {
      for (const queue of queues) queue.offer(note)
    },
  })
  const store = audit.search && world.store.isDurable ? new SqlAuditStore(world.store.database) : undefined
  const copy = store && (await startCopy({ path, log, store, later, complain, originOf: originIn(config, path) }))
  const trail = new LogTrail({
    log,
    terms: { isStrict: audit.strict, refusesWhenFull: audit.onFull === 'refuse' },
    version,
    onFault: (error) => {
      const because = String(error)
      journal.record({ kind: 'fault-seen', at: clock.now(), where: 'audit', because, ticketId: undefined })
    },
  })
  journal.tap({ name: 'audit', kinds: ENTRY_KINDS, take: (entry) => trail.note(entry) })
  const erasures = new EraseRequests(path, nowMs)
  const sinksView = () => queues.map((queue) => queue.view())
  const report = (): void =>
    journal.record({ kind: 'audit-reported', at: clock.now(), ...log.view(), copy: copy?.view(), sinks: sinksView() })
  const look = async (): Promise<void> => {
    await siblings.refresh()
    await erasures.carryOut((tag) => log.erase(tag))
  }
  const stops = [
    every(clock, secondsToUs(audit.checkpointS), () => void look().catch(() => {})),
    every(clock, REPORT_US, report),
    every(
      clock,
      PRUNE_US,
      () => void store?.prune(nowMs() - audit.retentionDays * DAY_MS, PRUNE_EVENTS).catch(() => {}),
    ),
  ]
  const desk = new LiveAuditDesk({ path, log, store, erasures, witness, notes: () => readHeadNotes(path) })
  return {
    parts: { audit: trail },
    desk,
    detail: () =>
      detailOf(
        log,
        sinksView()
          .filter(({ isAway }) => isAway)
          .map(({ name }) => name),
      ),
    async close() {
      for (const stop of stops) stop()
      await log.close()
      await copy?.close()
      await Promise.all(queues.map((queue) => queue.close()))
      report()
      taken.unlock()
    },
  }
}

const AUDIT = { kind: 'platform', name: 'audit' } as const

function detailOf(log: FsAuditLog, away: readonly string[]): string | undefined {
  const { spool } = log.view()
  const words = [
    log.isFull ? 'the audit is full' : '',
    spool.isInTrouble ? 'the audit’s disk is away' : '',
    away.length > 0 ? `checkpoints do not reach ${away.join(', ')}` : '',
  ].filter((word) => word !== '')
  return words.length === 0 ? undefined : words.join(', ')
}

/** Heads of the host's other chains, read now and then. */
class Siblings {
  heads: readonly PeerHead[] = []
  readonly #path: string

  constructor(path: string) {
    this.#path = path
  }

  async refresh(): Promise<void> {
    this.heads = (await readHeadNotes(this.#path)).flatMap((note) => headOf(note) ?? [])
  }
}

const originIn =
  ({ audit }: Config, path: string) =>
  (folder: string): string =>
    `${audit.name}/${folder.slice(path.length + 1)}`

/** The version is made once for each change of the settings. */
function versionOf(config: Config, settings: () => Config): () => string {
  let known = config
  let version = configVersion(config)
  return () => {
    const present = settings()
    if (present !== known) {
      known = present
      version = configVersion(present)
    }
    return version
  }
}

interface ChainWorld extends AuditWorld {
  readonly path: string
  readonly heads: () => readonly PeerHead[]
  readonly onCheckpoint: (note: string) => void
}

/** A chain for this process: one that nobody has, and that goes on where its last checkpoint says. */
async function openChain(
  config: Config,
  world: ChainWorld,
): Promise<{ readonly log: FsAuditLog; readonly taken: TakenFolder }> {
  const { audit } = config
  const { path, clock, complain } = world
  const broken: { folder: string; because: string }[] = []
  for (let nth = 0; nth < BROKEN_MAX; nth++) {
    const taken = takeSpoolFolder(path, process.pid, (folder) => broken.every((one) => one.folder !== folder))
    if (taken === undefined) break
    const name = taken.folder.slice(path.length + 1)
    const key = openAuditKey(audit.keyFile ?? `${path}/signing.key`)
    const origin = originIn(config, path)(taken.folder)
    if (key.isNew) complain(newKeyText(origin, key))
    const log = await FsAuditLog.open({
      folder: taken.folder,
      origin,
      process: name,
      key,
      now: () => clock.now(),
      later: (ms, run) => clock.at(clock.now() + msToUs(ms), run),
      complain,
      bytesMax: audit.bytesMax,
      retentionMs: audit.retentionDays * DAY_MS,
      checkpointMs: audit.checkpointS * 1_000,
      peers: world.heads,
      onCheckpoint: world.onCheckpoint,
    })
    if (typeof log !== 'string') {
      for (const { folder, because } of broken) tellBroken(log, folder, because)
      return { log, taken }
    }
    taken.unlock()
    broken.push({ folder: taken.folder, because: log })
    complain(
      `The audit in ${taken.folder} is not what was signed: ${log}. It is left as it is; try: spillway audit verify ${taken.folder}`,
    )
  }
  throw new Error(`No chain of the audit in ${path} can be used. Set audit.path to another folder`)
}

function tellBroken(log: FsAuditLog, folder: string, because: string): void {
  log.append({ kind: 'gap', actor: AUDIT, decision: { outcome: 'set-aside', because }, detail: { chain: folder } })
}

const newKeyText = (origin: string, { seed }: AuditKey): string =>
  `audit: a new key signs checkpoints. Keep its public half elsewhere, to verify with:\n  ${verifierKeyOf(origin, new NoteSigner(origin, seed).publicKey)}`

function every(clock: Clock, us: number, run: () => void): CancelTimer {
  let cancel: CancelTimer = () => {}
  const next = (): void => {
    cancel = clock.at(clock.now() + us, () => {
      run()
      next()
    })
  }
  next()
  return () => cancel()
}
