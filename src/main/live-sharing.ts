import { readPassword } from '../assembly/fs-password.ts'
import { readTls } from '../assembly/fs-tls.ts'
import type { Clock } from '../base/clock.ts'
import { makeIds } from '../base/live-ids.ts'
import { redisUrlsOf } from '../config/check-sharing.ts'
import { redactedUrl } from '../config/redact.ts'
import type { Config } from '../config/schema.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { Capacity, Journal } from '../lifecycle/ports.ts'
import { CellSalt } from '../lifecycle/sharing/cell-salt.ts'
import { Renewals } from '../lifecycle/sharing/renewals.ts'
import { NO_ROOM_YET, RoomExchange } from '../lifecycle/sharing/room-exchange.ts'
import { SharingWatch } from '../lifecycle/sharing/watch-sharing.ts'
import type { Sharing, SliceFetcher } from '../lifecycle/sharing-ports.ts'
import type { BudgetParts } from '../policy/budgets/scope-budget.ts'
import { PermitBook } from '../policy/sharing/leased-permits.ts'
import { SHARING_DEFAULTS, SliceBook } from '../policy/sharing/slice-book.ts'

/**
 * Limits that this gateway keeps together with others. `openLeaseStore` chooses the store from the settings; everything
 * else is the same whatever the store is.
 */

/** A lease store that is open, and what to call it in the log. */
export interface LeaseStore {
  readonly sharing: Sharing
  /** The same at every gateway of the store. */
  readonly shardCount: number
  /** Without a password. */
  readonly where: string
  /** Why the last call had no answer, where that is known. */
  readonly problem: () => string | undefined
  close(): void
}

/** The lease store that the settings name; undefined where this gateway enforces limits by itself. */
export async function openLeaseStore(config: Config, clock: Clock): Promise<LeaseStore | undefined> {
  const urls = redisUrlsOf(config)
  if (urls.length === 0) return undefined
  const { redis } = config.sharing
  const shardCount = redis.kind === 'cluster' ? SHARDS_OF_CLUSTER : SHARDS_OF_SERVER
  // Loaded only where it is used: its client is 470 modules.
  const { RedisSharing } = await import('../sharing/redis-sharing.ts')
  const sharing = new RedisSharing({
    clock,
    urls,
    kind: redis.kind,
    masterName: redis.masterName,
    login: {
      username: redis.username,
      password: readPassword(redis),
      tls: readTls(redis.tls, 'sharing.redis'),
    },
    cell: cellOf(config),
    shardCount,
  })
  return {
    sharing,
    shardCount,
    where: `${redis.kind} ${redactedUrl(redis.url ?? '')}`,
    problem: () => sharing.problem,
    close: () => sharing.close(),
  }
}

/** A cluster spreads shards over its nodes. One server has nothing to spread, and fewer calls cost less at both ends. */
const SHARDS_OF_CLUSTER = SHARING_DEFAULTS.shardCount
const SHARDS_OF_SERVER = 4

/** Gateways with the same cell share their limits. */
function cellOf({ sharing: { name, scope }, regions: { local } }: Config): string {
  return scope === 'platform' || local === undefined ? name : `${name}:${local}`
}

/** What is plugged into the platform, and when it begins and ends. */
export interface LiveSharing {
  /** For `assemble`. */
  readonly parts: {
    readonly budgetParts?: BudgetParts
    readonly slices?: SliceFetcher
    readonly capacity?: Capacity
  }
  /** What names of prompts' beginnings begin with: the same at all gateways that share, and else this process' own. */
  readonly salt: () => string
  /** Tells the other gateways a text under a topic, and answers what they told last; undefined: nobody answers, or nothing is shared. */
  readonly tell: ((topic: string, text: string) => Promise<HeardTexts | undefined>) | undefined
  /** For the readiness probe; undefined where nothing is shared. */
  readonly detail: () => string | undefined
  /**
   * Every shard has heard this gateway, and it has its first room at the platform's replicas; or a second is over. Limits hold
   * from the first request on.
   */
  start(platform: Platform): Promise<void>
  /** Leaves the roster, so that the others have this gateway's share at once. */
  stop(): Promise<void>
}

/** What the other live gateways told, and how many gateways there are. */
export interface HeardTexts {
  readonly texts: readonly string[]
  readonly gatewayCount: number
}

const aloneWith = (salt: string): LiveSharing => ({
  parts: {},
  salt: () => salt,
  tell: undefined,
  detail: () => undefined,
  start: () => Promise.resolve(),
  stop: () => Promise.resolve(),
})

export function makeLiveSharing(
  config: Config,
  { clock, journal }: { readonly clock: Clock; readonly journal: Journal },
  store: LeaseStore | undefined,
): LiveSharing {
  if (store === undefined) return aloneWith(makeIds()())
  const { ttlMs, forgetMs } = config.sharing
  const book = new SliceBook(clock.now(), makeIds()(), { ttlMs, forgetMs, shardCount: store.shardCount })
  const permits = new PermitBook(clock.now(), book.id, book.options)
  const renewals = new Renewals(clock, store.sharing, book, permits)
  const { where, problem } = store
  const salt = new CellSalt(clock, store.sharing, makeIds()())
  let rooms: RoomExchange | undefined
  const watch = new SharingWatch({ clock, journal, book, renewals, where, problem })
  return {
    parts: {
      budgetParts: {
        makeBucket: (now, name, limit) => book.bucket(now, name, limit),
        makePermits: (now, name, limit) => permits.permits(now, name, limit),
      },
      slices: renewals,
      capacity: NO_ROOM_YET,
    },
    salt: () => salt.text,
    async tell(topic, text) {
      // Whoever only talks brings no epoch, so that the store learns nothing from it about its own life.
      const member = { id: book.id, epoch: '', told: 0, ttlMs, forgetMs }
      const answer = await store.sharing.room(member, { topic, text }, [])
      return answer && { texts: [...answer.reports.values()], gatewayCount: answer.gatewayCount }
    },
    detail: () => watch.detail,
    async start(platform) {
      rooms = new RoomExchange(platform, store.sharing, book.id, { ttlMs, forgetMs })
      await Promise.all([renewals.start(), rooms.start(), salt.start()])
      watch.start()
    },
    async stop() {
      watch.stop()
      salt.stop()
      rooms?.stop()
      await renewals.stop()
      store.close()
    },
  }
}
