/**
 * What is placing well worth? The same arrivals on the same simulated engines, placed in turn, by least load, and by
 * predicted time to first token.
 *
 *   prefix-heavy    8 × H100, 1,000 documents of 3,000 tokens asked about again and again: they fit the pool's memories
 *                   together, but no single one
 *   sessions        8 × H100, conversations that grow from turn to turn
 *   heterogeneous   4 × H100 and 4 × A100 in one pool, nothing shared
 *
 *   node bench/experiments/placement.ts [requests] [seed]
 */
import { EngineDriver } from '../../src/backends/engine-driver.ts'
import { Rng } from '../../src/base/rng.ts'
import { VirtualClock } from '../../src/base/virtual-clock.ts'
import { Engine } from '../../src/engine/engine.ts'
import { limitsOf } from '../../src/engine/gpu-profile.ts'
import { findGpuProfile } from '../../src/engine/gpu-profiles.ts'
import { Dispatcher } from '../../src/policy/dispatch/dispatcher.ts'
import type { Effect } from '../../src/policy/dispatch/offer.ts'
import { LeastLoaded, type Placer } from '../../src/policy/dispatch/placer.ts'
import { FixedLimit } from '../../src/policy/limits/fixed.ts'
import { RoutingPlacer } from '../../src/policy/routing/placer.ts'
import { makeKey, makeTenant } from '../../test/support/demand.ts'

const REQUESTS = Number(process.argv[2] ?? 20_000)
const SEED = Number(process.argv[3] ?? 1)
const BLOCK_TOKENS = 16
/** The first fifth fills the caches and teaches the placer; it is not counted. */
const WARM_UP = REQUESTS / 5

interface Ask {
  readonly promptTokens: number
  readonly outputTokens: number
  readonly hashes: readonly number[]
  readonly session: number
}

interface World {
  readonly gpus: readonly string[]
  readonly perSecond: number
  readonly makeAsk: (rng: Rng, i: number) => Ask
}

const blocks = (name: number, tokens: number): number[] =>
  Array.from({ length: Math.floor(tokens / BLOCK_TOKENS) }, (_, i) => name * 65_536 + i)

function makeSessions(): World['makeAsk'] {
  const turns = new Map<number, number>()
  return (rng) => {
    const session = rng.below(800)
    const turn = (turns.get(session) ?? 0) % 12
    turns.set(session, turn + 1)
    const promptTokens = 400 + 350 * turn
    return {
      promptTokens,
      outputTokens: 150,
      hashes: blocks(session * 16 + Math.floor((turns.get(session) ?? 0) / 12), promptTokens),
      session,
    }
  }
}

const worlds: Readonly<Record<string, () => World>> = {
  'prefix-heavy': () => ({
    gpus: Array.from({ length: 8 }, () => 'h100-llama-8b'),
    perSecond: 105,
    makeAsk: (rng, i) => ({
      promptTokens: 3_200,
      outputTokens: 100,
      hashes: blocks(rng.below(1_000), 3_000),
      session: i,
    }),
  }),
  sessions: () => ({ gpus: Array.from({ length: 8 }, () => 'h100-llama-8b'), perSecond: 90, makeAsk: makeSessions() }),
  heterogeneous: () => ({
    gpus: ['h100-llama-8b', 'a100-llama-8b'].flatMap((gpu) => [gpu, gpu, gpu, gpu]),
    perSecond: 60,
    makeAsk: (rng, i) => ({ promptTokens: 300 + rng.below(3_000), outputTokens: 120, hashes: [], session: i }),
  }),
}

class InTurn implements Placer {
  readonly because = 'in turn'
  #turn = 0

  choose(...[, , rooms]: Parameters<Placer['choose']>): ReturnType<Placer['choose']> {
    return rooms[this.#turn++ % rooms.length]!
  }
}

async function run(world: World, placer: Placer) {
  const clock = new VirtualClock()
  const rng = Rng.stream(SEED, 'arrivals')
  const dispatcher = new Dispatcher({ placer, options: { queueRequestsMax: 100_000 } })
  const drivers = new Map<string, EngineDriver>()
  for (const [i, gpu] of world.gpus.entries()) {
    const profile = findGpuProfile(gpu)!
    const limits = limitsOf(profile)
    const replica = { id: `${gpu}-${i}`, poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    drivers.set(replica.id, new EngineDriver(new Engine({ coefficients: profile.coefficients, limits }), clock))
    dispatcher.addReplica(0, {
      replica,
      limit: new FixedLimit({ sequencesMax: 64 }),
      kvTokensMax: limits.blockCount * BLOCK_TOKENS,
    })
  }
  const [tenant, key] = [makeTenant('a', { queueUsMax: 600_000_000 }), makeKey('k', 'a')]
  const asks = new Map<string, Ask & { readonly arrivedAt: number; readonly isCounted: boolean }>()
  const ttftUs: number[] = []
  let cached = 0
  let prompt = 0
  const learn = placer instanceof RoutingPlacer ? placer : undefined
  const apply = (effects: readonly Effect[]): void => {
    for (const effect of effects) {
      if (effect.kind !== 'granted') continue
      const { ticketId, lease } = effect
      const ask = asks.get(ticketId)!
      const grantedAt = clock.now()
      let firstTokenUs = 0
      const spec = {
        id: ticketId,
        promptTokens: ask.promptTokens,
        outputTokens: ask.outputTokens,
        prefixHashes: ask.hashes,
      }
      drivers.get(lease.replica.id)!.submit({ ...spec, salt: 'a' }, (event) => {
        if (event.kind === 'first-token') {
          firstTokenUs = event.at - grantedAt
          if (!ask.isCounted) return
          ttftUs.push(event.at - ask.arrivedAt)
          cached += event.cachedTokens
          prompt += ask.promptTokens
        } else if (event.kind === 'finished') {
          asks.delete(ticketId)
          learn?.observe(clock.now(), { ticketId, replicaId: lease.replica.id, firstTokenUs, isFailed: false })
          apply(dispatcher.release(clock.now(), lease.id, { cost: 1, ending: 'finished', firstTokenUs }))
        }
      })
    }
  }
  let i = 0
  const arrive = (): void => {
    const now = clock.now()
    const ask = world.makeAsk(rng, i)
    const ticketId = `t${i}`
    asks.set(ticketId, { ...ask, arrivedAt: now, isCounted: i >= WARM_UP })
    const estimate = {
      promptTokens: ask.promptTokens,
      cachedTokens: 0,
      outputTokens: ask.outputTokens,
      outputTokensHigh: ask.outputTokens,
      cost: ask.promptTokens + 4 * ask.outputTokens,
      engineUs: ask.promptTokens * 40 + ask.outputTokens * 12_000,
    }
    const offer = { ticketId, poolId: 'pool', tenant, key, band: 'standard', bid: 0, estimate, arrivedAt: now } as const
    const more = { expiresAt: now + 600_000_000, isReady: true, prefixHashes: ask.hashes, sessionHash: ask.session }
    apply(dispatcher.offer(now, { ...offer, ...more }).effects)
    if (++i < REQUESTS) clock.at(now - Math.log(1 - rng.next()) * (1e6 / world.perSecond), arrive)
  }
  clock.at(0, arrive)
  await clock.run()
  ttftUs.sort((a, b) => a - b)
  const at = (ratio: number): string =>
    `${((ttftUs[Math.floor(ratio * (ttftUs.length - 1))] ?? 0) / 1_000).toFixed(0)} ms`
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), hit: `${((100 * cached) / prompt).toFixed(1)} %` }
}

/** What one cache for all, of any size, would hit: everything but the first time. */
function bestHit(world: World): string {
  const rng = Rng.stream(SEED, 'arrivals')
  const seen = new Set<number>()
  let hit = 0
  let total = 0
  for (let i = 0; i < REQUESTS; i++) {
    const { hashes, promptTokens } = world.makeAsk(rng, i)
    let known = 0
    while (known < hashes.length && seen.has(hashes[known]!)) known++
    for (const hash of hashes) seen.add(hash)
    if (i >= WARM_UP) {
      hit += Math.min(known * BLOCK_TOKENS, promptTokens - 1)
      total += promptTokens
    }
    rng.next()
  }
  return `${((100 * hit) / total).toFixed(1)} %`
}

console.log(`${REQUESTS} requests, seed ${SEED}; time to first token, and prompt tokens found in memory`)
for (const [name, makeWorld] of Object.entries(worlds)) {
  console.log(`\n${name}: best possible ${bestHit(makeWorld())}`)
  const placers: Readonly<Record<string, Placer>> = {
    'in turn': new InTurn(),
    'least load': new LeastLoaded(),
    'soonest first token': new RoutingPlacer({ rng: Rng.stream(SEED, 'routing') }),
  }
  for (const [how, placer] of Object.entries(placers)) {
    const { p50, p95, p99, hit } = await run(makeWorld(), placer)
    console.log(
      `  ${how.padEnd(20)} p50 ${p50.padStart(9)}  p95 ${p95.padStart(9)}  p99 ${p99.padStart(9)}  held ${hit.padStart(7)}`,
    )
  }
}
