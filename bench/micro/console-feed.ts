/**
 * What does the console's feed cost, and how large are its messages?
 *
 * 10,000 tenants send 1,000 requests a second to 20 pools with 100 replicas; ten operators look. A second is made as the
 * live server makes it: entries are taken as they come, one view is put together and spelled for all viewers, and sent
 * to each. Entries are made beforehand. CPU time is this process's own, so that a busy machine disturbs it little.
 * Taking entries is paid whether somebody looks or not, and grows with requests; the rest is what viewers cost.
 *
 *   node bench/micro/console-feed.ts [seconds]
 */
import { ConsoleDelta } from '../../src/console/console-delta.ts'
import { ConsoleFeed } from '../../src/console/console-feed.ts'
import type { Entry } from '../../src/domain/entry.ts'
import { settled, story } from '../../test/support/entries.ts'

const SECONDS = Number(process.argv[2] ?? 120)
const WARM_UP_S = 20
const TENANTS = 10_000
const REQUESTS_PER_S = 1_000
const POOLS = 20
const REPLICAS = 100
const VIEWERS = 10
const US = 1_000_000

const random = (n: number): number => Math.floor(Math.abs(Math.sin(n * 12.9898) * 43_758.5453) * 1e6)
/** A few tenants send much, most send little: squares of evenly spread numbers. */
const tenantOf = (n: number): string => `tenant-${Math.floor(((random(n) % 1_000) / 1_000) ** 3 * TENANTS)}`

function entriesOf(second: number): Entry[] {
  const at = second * US
  const requests = Array.from({ length: REQUESTS_PER_S }, (_, i) => {
    const n = second * REQUESTS_PER_S + i
    const isRefused = i % 50 === 0
    const more = {
      at: at + i,
      ticketId: `req_${n}`,
      tenantId: tenantOf(n),
      model: `model-${n % 8}`,
      isKept: i % 97 > 0,
    }
    return story(settled(isRefused ? { ...more, outcome: 'rejected', because: 'it would be late' } : more))
  })
  const pools = Array.from(
    { length: POOLS },
    (_, i): Entry => ({
      kind: 'pool-reported',
      at,
      poolId: `pool-${i}`,
      queuedCount: random(second + i) % 50,
      queuedCost: 1,
      heldCount: random(second - i) % 200,
      readyReplicaCount: REPLICAS / POOLS,
      pressure: (random(second * i) % 1_000) / 1_000,
      drainPerUs: 1,
      falseRejects: 0,
      rightRejects: 0,
      observedCount: 0,
      falseAdmits: 0,
      waiting: {
        keys: Array.from({ length: 20 }, (_, k) => ({
          orgId: `org-${k % 7}`,
          tenantId: tenantOf(k),
          keyId: `key-${k}`,
          count: 1 + (random(second + k + i) % 9),
        })),
        otherKeyCount: 300,
        otherCount: 500,
      },
      backlogged: Array.from({ length: 20 }, (_, k) => ({ tenantId: tenantOf(second + k), share: 0.05 })),
    }),
  )
  return [...requests.flat(), ...pools]
}

const feed = new ConsoleFeed()
const deltas = new ConsoleDelta()
for (let i = 0; i < REPLICAS; i++)
  feed.take({ kind: 'replica-reported', at: US, replicaId: `replica-${i}`, isReady: true, because: 'it answers' })

const cpuUs = (): number => {
  const { user, system } = process.cpuUsage()
  return user + system
}
let [takenUs, toldUs, bytes, largest, whole, sent] = [0, 0, 0, 0, 0, 0]
let toldEvent = 0
for (let second = 2; second < 2 + WARM_UP_S + SECONDS; second++) {
  const entries = entriesOf(second)
  const began = cpuUs()
  for (const entry of entries) feed.take(entry)
  const taken = cpuUs()
  const view = feed.view((second + 1) * US, toldEvent)
  const message = deltas.spell(view)
  // Each viewer's frame is written by itself, as the route does.
  for (let i = 0; i < VIEWERS; i++) sent += Buffer.from(`event: delta\ndata: ${message}\n\n`).length
  const told = cpuUs()
  toldEvent = feed.lastEvent
  if (second < 2 + WARM_UP_S) continue
  takenUs += taken - began
  toldUs += told - taken
  bytes += message.length
  largest = Math.max(largest, message.length)
  whole += JSON.stringify(view).length
}

const perSecond = (us: number): string =>
  `${(us / SECONDS / 1_000).toFixed(2)} ms a second, ${(us / SECONDS / 10_000).toFixed(2)} % of a core`
console.log(
  `${TENANTS} tenants, ${REQUESTS_PER_S} requests a second, ${VIEWERS} viewers, ${SECONDS} s, ${sent} bytes written`,
)
console.log(`taking entries (with or without viewers): ${perSecond(takenUs)}`)
console.log(`making and sending the second's message:  ${perSecond(toldUs)}`)
console.log(
  `a viewer gets ${Math.round(bytes / SECONDS)} bytes a second (largest ${largest}); whole views would be ${Math.round(whole / SECONDS)}`,
)
