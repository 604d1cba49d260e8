/**
 * What does choosing a replica cost, and what does the prefix index hold and weigh?
 *
 * A pool of replicas with random loads and a table of prompts that share their beginnings. Placements one after the
 * other, a millisecond apart, each teaching the index; then look-ups alone. The claim: with 1,000 replicas a placement
 * stays under 100 µs.
 *
 *   node bench/micro/place.ts [placements]
 */
import { Rng } from '../../src/base/rng.ts'
import { Ledger } from '../../src/policy/limits/ledger.ts'
import { RoutingPlacer } from '../../src/policy/routing/placer.ts'
import { PrefixIndex } from '../../src/policy/routing/prefix-index.ts'
import type { PlacementAsk, RoomView } from '../../src/policy/routing/room-view.ts'
import { makeEstimate } from '../../test/support/demand.ts'

const PLACEMENTS = Number(process.argv[2] ?? 20_000)
const WARM_UP = 2_000
const PROMPTS = 512

const rng = Rng.stream(1, 'bench')
const prompts = [8, 64, 256, 2_000].map((blockCount) => ({
  blockCount,
  hashes: Array.from({ length: PROMPTS }, (_, prompt) =>
    // The first half of a prompt is one of sixteen; the rest is its own.
    Array.from({ length: blockCount }, (_, i) => ((i < blockCount / 2 ? prompt % 16 : prompt) + 1) * 1_000_003 + i),
  ),
}))

function makeRooms(count: number): RoomView[] {
  return Array.from({ length: count }, (_, ordinal) => {
    const ledger = new Ledger()
    for (let i = rng.below(12); i > 0; i--) ledger.hold(makeEstimate(200 + rng.below(2_000), 10 + rng.below(400)))
    const replica = { id: `replica-${ordinal}`, poolId: 'pool', model: 'model', releaseId: 'm@1', region: 'here' }
    return { replica, ordinal, place: ordinal, kvTokensMax: 400_000, ledger }
  })
}

const askOf = (i: number, hashes: readonly number[]): PlacementAsk => ({
  ticketId: `t${i}`,
  estimate: makeEstimate(hashes.length * 16 + 50, 100),
  prefixHashes: hashes,
  sessionHash: i % 1_000,
})

/**
 * Wall time, and the mean of the thread's own processor time, in which other processes of a busy machine do not count;
 * garbage collection on this thread does. The processor's clock moves in milliseconds, so of that only a mean is told.
 */
function time(count: number, work: (i: number) => void): string {
  const wallUs = new Float64Array(count)
  const ownFrom = ownTimeUs()
  for (let i = 0; i < count; i++) {
    const from = performance.now()
    work(i)
    wallUs[i] = (performance.now() - from) * 1_000
  }
  const ownMeanUs = (ownTimeUs() - ownFrom) / count
  return `wall ${spread(wallUs)}   own mean ${ownMeanUs.toFixed(1).padStart(6)}`
}

function ownTimeUs(): number {
  const { user, system } = process.threadCpuUsage()
  return user + system
}

function spread(tookUs: Float64Array): string {
  const mean = tookUs.reduce((a, b) => a + b) / tookUs.length
  const sorted = tookUs.toSorted()
  const at = (ratio: number) => (sorted[Math.floor(ratio * (sorted.length - 1))] as number).toFixed(1).padStart(7)
  return `p50 ${at(0.5)}  p99 ${at(0.99)}  mean ${mean.toFixed(1).padStart(7)}`
}

console.log(`µs a placement, ${PLACEMENTS} placements, ${PROMPTS} prompts that share their first halves`)
for (const replicaCount of [8, 64, 1_000]) {
  const rooms = makeRooms(replicaCount)
  for (const { blockCount, hashes } of prompts) {
    const placer = new RoutingPlacer({ rng: Rng.stream(2, 'routing') })
    const place = (i: number) =>
      placer.choose(1_000 * i, askOf(i, hashes[i % PROMPTS] as number[]), rooms).ledger.sequences
    for (let i = 0; i < WARM_UP; i++) place(i)
    const report = time(PLACEMENTS, (i) => place(WARM_UP + i))
    console.log(`${String(replicaCount).padStart(5)} replicas, ${String(blockCount).padStart(4)} blocks   ${report}`)
  }
}

console.log('\nprefix index: µs a look-up alone')
for (const { blockCount, hashes } of prompts) {
  const index = new PrefixIndex()
  const slots = Array.from({ length: 1_000 }, () => index.addSlot(25_000) as number)
  for (let i = 0; i < 4 * PROMPTS; i++)
    index.record(i, slots[rng.below(1_000)] as number, hashes[i % PROMPTS] as number[], 10)
  const report = time(PLACEMENTS, (i) => index.match(i, hashes[i % PROMPTS] as number[]).count)
  console.log(`${String(blockCount).padStart(22)} blocks   ${report}`)
}
const index = new PrefixIndex()
console.log(`\nmemory: ${(index.bytes / 2 ** 20).toFixed(1)} MiB, whatever is put into it`)
