import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { LiveClock } from '../../src/base/live-clock.ts'
import { Renewals } from '../../src/lifecycle/sharing/renewals.ts'
import { Budgets } from '../../src/policy/budgets/budgets.ts'
import type { Scope } from '../../src/policy/budgets/scope-budget.ts'
import { PermitBook } from '../../src/policy/sharing/leased-permits.ts'
import { SliceBook } from '../../src/policy/sharing/slice-book.ts'
import { RedisSharing } from '../../src/sharing/redis-sharing.ts'

/**
 * What does sharing cost a request? 1,000 tenants with limits of requests and tokens, asked, reserved, told and settled in
 * turn, as a request does: with budgets of the process' own, and with slices over a real Redis, in alternating seconds.
 * Renewals run as live; a request that would fetch is refused here. Prints CPU time (of this process: client library and renewals included) per request at a
 * given rate; a whole request costs the gateway some 650 µs.
 *
 *     node bench/micro/shared-budgets.ts [rate] [seconds]
 */
const [rate = 500, seconds = 20] = process.argv.slice(2).map(Number)
const REDIS = 'redis-server'
const TENANTS = 1_000
const clock = new LiveClock()
const scopes: readonly (readonly Scope[])[] = Array.from({ length: TENANTS }, (_, i) => [
  {
    id: `t${i}`,
    noun: 'tenant',
    allowance: { requests: { perMinute: 60_000, burst: 6_000 }, tokens: { perMinute: 6_000_000, burst: 600_000 } },
  },
  { id: `t${i}/k`, noun: 'key', allowance: {} },
])

const free = createServer().listen(0, '127.0.0.1')
await once(free, 'listening')
const { port } = free.address() as AddressInfo
free.close()
const redis = spawn(REDIS, ['--port', String(port), '--bind', '127.0.0.1', '--save', ''], { stdio: 'ignore' })
const sharing = new RedisSharing({ clock, urls: [`redis://127.0.0.1:${port}`], shardCount: 4 })
const book = new SliceBook(clock.now(), 'bench', { shardCount: 4 })
const permits = new PermitBook(clock.now(), 'bench', book.options)
const counts = { callCount: 0, answerCount: 0, accountCount: 0 }
const ways = {
  own: new Budgets(),
  shared: new Budgets({
    makeBucket: (now, name, limit) => book.bucket(now, name, limit),
    makePermits: (now, name, limit) => permits.permits(now, name, limit),
  }),
}

function pass(budgets: Budgets, i: number): boolean {
  const mine = scopes[i % TENANTS] as readonly Scope[]
  const now = clock.now()
  if (budgets.refusalFor(now, mine, 40) !== undefined) return false
  const held = budgets.reserve(now, mine, 40)
  budgets.view(now, mine)
  budgets.settle(clock.now(), held, 25)
  return true
}

/** CPU microseconds of a while in which requests come at the rate. */
async function slice(
  budgets: Budgets | undefined,
  ms: number,
  from: number,
): Promise<{ cpuUs: number; count: number; refused: number }> {
  const before = process.cpuUsage()
  const startAt = performance.now()
  let [count, refused] = [0, 0]
  while (performance.now() - startAt < ms) {
    const due = ((performance.now() - startAt) / 1_000) * rate
    for (; budgets !== undefined && count < due; count++) if (!pass(budgets, from + count)) refused++
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const { user, system } = process.cpuUsage(before)
  return { cpuUs: user + system, count, refused }
}

/** Renewals run only while shared budgets are measured: beats are part of what sharing costs. */
async function sharedSlice(ms: number, from: number): ReturnType<typeof slice> {
  const renewals = new Renewals(clock, sharing, book, permits)
  await renewals.start()
  const measured = await slice(ways.shared, ms, from)
  const { callCount, answerCount, accountCount } = renewals.takeCounts()
  counts.callCount += callCount
  counts.answerCount += answerCount
  counts.accountCount += accountCount
  await renewals.stop()
  return measured
}

const total = { own: { cpuUs: 0, count: 0, refused: 0 }, shared: { cpuUs: 0, count: 0, refused: 0 } }
await slice(ways.own, 2_000, 0)
await sharedSlice(2_000, 0)
for (let round = 0; round * 2 < seconds; round++) {
  for (const name of ['own', 'shared'] as const) {
    const from = total[name].count
    const measured = name === 'own' ? await slice(ways.own, 1_000, from) : await sharedSlice(1_000, from)
    total[name].cpuUs += measured.cpuUs
    total[name].count += measured.count
    total[name].refused += measured.refused
  }
}
for (const [name, { cpuUs, count, refused }] of Object.entries(total))
  console.log(`${name}: ${(cpuUs / count).toFixed(1)} µs of CPU a request (${count} requests, ${refused} refused)`)
console.log(`calls ${counts.callCount}, answered ${counts.answerCount}, accounts ${counts.accountCount}`)
const more = total.shared.cpuUs / total.shared.count - total.own.cpuUs / total.own.count
console.log(`sharing: ${more.toFixed(1)} µs more, ${((100 * more) / 650).toFixed(1)} % of a request of 650 µs`)
sharing.close()
redis.kill('SIGINT')
