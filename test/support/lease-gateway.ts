import { LiveClock } from '../../src/base/live-clock.ts'
import { Renewals } from '../../src/lifecycle/sharing/renewals.ts'
import { SliceBook } from '../../src/policy/sharing/slice-book.ts'
import { RedisSharing } from '../../src/sharing/redis-sharing.ts'

/**
 * One gateway's budgets as a process of its own, so that a test can stop and kill it (`lease-fleet.ts` starts it). Spends
 * from one shared bucket as often as it is told and may, and tells its parent what it spent when. The instants of all
 * processes of a machine are one clock's.
 */
export interface LeaseGatewayOptions {
  readonly id: string
  readonly urls: readonly string[]
  readonly kind: 'server' | 'cluster'
  readonly cell: string
  readonly limit: { readonly perMinute: number; readonly burst: number }
  readonly requestTokens: number
  /** Tokens that this gateway is offered in a second. */
  readonly perSecond: number
}

export interface LeaseGatewayNews {
  readonly spent: readonly (readonly [at: number, amount: number])[]
  readonly gatewayCount: number
  readonly isSilent: boolean
}

const TICK_US = 5_000
const NEWS_US = 50_000

async function run({ id, urls, kind, cell, limit, requestTokens, perSecond }: LeaseGatewayOptions): Promise<void> {
  const clock = new LiveClock()
  const sharing = new RedisSharing({ clock, urls, kind, cell, shardCount: 4 })
  const book = new SliceBook(clock.now(), id, { shardCount: 4 })
  const renewals = new Renewals(clock, sharing, book)
  await renewals.start()
  const bucket = book.bucket(clock.now(), 'tenant:t:tokens', limit)
  let spent: (readonly [number, number])[] = []
  let [toldAt, offeredAt, offered] = [clock.now(), clock.now(), 0]
  for (;;) {
    await clock.sleep(TICK_US)
    offered += ((clock.now() - offeredAt) * perSecond) / 1_000_000
    offeredAt = clock.now()
    // What was offered long ago was refused then.
    offered = Math.min(offered, perSecond / 4)
    for (; offered >= requestTokens; offered -= requestTokens) {
      const now = clock.now()
      if (bucket.fitsAt(now, requestTokens) !== now) continue
      bucket.take(now, requestTokens)
      spent.push([now, requestTokens])
    }
    if (clock.now() - toldAt < NEWS_US) continue
    toldAt = clock.now()
    const news: LeaseGatewayNews = {
      spent,
      gatewayCount: book.gatewayCount,
      isSilent: book.silence(clock.now()).shardCount > 0,
    }
    process.send?.(news)
    spent = []
  }
}

process.once('message', (options: LeaseGatewayOptions) => void run(options))
process.on('disconnect', () => process.exit(0))
