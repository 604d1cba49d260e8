import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { missing } from '../support/installed.ts'
import { CLIENT_KEY } from '../support/region.ts'
import { type Answered, RegionLoad } from '../support/region-load.ts'
import {
  gatewayMetric,
  HURRIED_KEY,
  METERED_BURST,
  METERED_KEY,
  RegionOfGateways,
  replicaAt,
} from '../support/region-of-gateways.ts'
import { freePort, startRedis, type TestServer } from '../support/servers.ts'
import { authorization, postJson } from '../support/start-platform.ts'

/**
 * Two regions of two gateways each. Under load a gateway of the other region is killed, then the second one, then both
 * come back. The loss of one gateway is no loss of the region: traffic goes on to the gateway that is left.
 */
const why = missing('redis')
const EU_ROOM = 4
const US_ROOM = 12
const TOKENS = 24

const folder = new TestFolder()
const regions: RegionOfGateways[] = []
const loads: RegionLoad[] = []
let redis: TestServer | undefined

beforeAll(async () => {
  if (why === undefined) redis = await startRedis()
}, 30_000)
afterEach(async () => {
  // Whatever broke, no client goes on asking.
  await Promise.all([...regions.splice(0).map((region) => region.close()), ...loads.splice(0).map((one) => one.stop())])
})
afterAll(async () => {
  folder.remove()
  await redis?.close()
})

async function startRegions(): Promise<[eu: RegionOfGateways, us: RegionOfGateways]> {
  const ports = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  const [euPorts, usPorts] = [ports.slice(0, 2), ports.slice(2)]
  const common = { folder, redisUrl: redis!.url }
  const eu = await RegionOfGateways.start({
    ...common,
    name: 'eu',
    ports: euPorts,
    peer: { name: 'us', ports: usPorts },
    room: EU_ROOM,
  })
  regions.push(eu)
  const us = await RegionOfGateways.start({
    ...common,
    name: 'us',
    ports: usPorts,
    peer: { name: 'eu', ports: euPorts },
    room: US_ROOM,
  })
  regions.push(us)
  await Promise.all([eu, us].flatMap((region) => [region.startGateway(0), region.startGateway(1)]))
  return [eu, us]
}

/** What the gateways of eu say of one of us, together. */
const seenFrom = async (eu: RegionOfGateways, name: string, labels: Record<string, string>): Promise<number> => {
  const values = await Promise.all(eu.urls.map((url) => gatewayMetric(url, name, labels)))
  return values.reduce((sum, value) => sum + value, 0)
}

const ask = async (url: string, key: string): Promise<Response> => {
  const response = await postJson(
    `${url}/v1/chat/completions`,
    { model: 'llama', max_tokens: 1, messages: [{ role: 'user', content: 'metered' }] },
    authorization(key),
  )
  await response.arrayBuffer()
  return response
}

/** How many of these requests of the metered tenant were let through; each of the others is told when to come back. */
async function askMetered(urls: readonly string[], count: number): Promise<number> {
  let admitted = 0
  for (let i = 0; i < count; i++) {
    const response = await ask(urls[i % urls.length] as string, METERED_KEY)
    if (response.status === 200) admitted++
    else {
      expect(response.status).toBe(429)
      expect(Number(response.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    }
  }
  return admitted
}

const isGood = ({ isWhole, errorCode, broken }: Answered): boolean =>
  isWhole && errorCode === undefined && broken === undefined
/** It had begun when the gateway over there was killed, and was told so in the stream. */
const isToldSo = ({ status, errorCode, isWhole, broken, characters }: Answered): boolean =>
  status === 200 && errorCode === 'replica_lost' && isWhole && broken === undefined && characters > 0
const isRefused = ({ status, broken }: Answered): boolean => (status === 429 || status === 503) && broken === undefined
const hasReturn = ({ retryAfter }: Answered): boolean => Number(retryAfter) >= 1
/** Nothing is kept for it, and it is told so. */
const hasNoReturn = ({ retryAfter, shouldRetry }: Answered): boolean => retryAfter === null && shouldRetry === 'false'

const ofEu = (region: RegionOfGateways, since: number): number[] =>
  region.began.filter((one) => one.at >= since && one.prompt.startsWith('eu')).map((one) => one.at)

/** The longest time in which no request of eu began in the region, from this instant on. */
function longestGapMs(region: RegionOfGateways, since: number): number {
  let [last, longest] = [since, 0]
  for (const begun of ofEu(region, since)) {
    longest = Math.max(longest, begun - last)
    last = begun
  }
  return Math.round(longest)
}

describe.skipIf(why !== undefined)(`regions of two gateways${why === undefined ? '' : `: ${why}`}`, () => {
  it('lose a gateway without losing the region, then the region, and have both back', {
    timeout: 300_000,
  }, async ({ annotate }) => {
    const [eu, us] = await startRegions()
    const [first, second] = us.urls.map((url) => replicaAt('us', url)) as [string, string]
    const isReady = async (replica: string): Promise<boolean> =>
      (await seenFrom(eu, 'spillway_replica_ready', { replica })) === eu.urls.length
    const isAway = async (replica: string): Promise<boolean> =>
      (await seenFrom(eu, 'spillway_replica_ready', { replica })) === 0
    await eventually('eu knows both gateways of us', async () => (await isReady(first)) && isReady(second), 60_000)
    const startedAt = performance.now()
    let metered = await askMetered(us.urls, 3 * METERED_BURST)
    expect(metered).toBeGreaterThan(0)

    const common = { clients: 16, tokens: TOKENS, key: CLIENT_KEY }
    const ours = new RegionLoad({ ...common, urls: eu.urls, name: 'eu' })
    const hurried = new RegionLoad({ ...common, urls: eu.urls, clients: 4, name: 'eu hurried', key: HURRIED_KEY })
    const theirs = new RegionLoad({ ...common, urls: us.urls, clients: 4, name: 'us' })
    loads.push(ours, hurried, theirs)
    const finishedAt = (replica: string) => seenFrom(eu, 'spillway_attempts_total', { replica, ending: 'finished' })
    await eventually(
      'both gateways of us serve requests of eu',
      async () => (await finishedAt(first)) >= 10 && (await finishedAt(second)) >= 10,
      60_000,
    )

    // One gateway of us is killed: the region stays.
    const oneKilledAt = performance.now()
    await us.killGateway(0)
    await eventually('its loss is noticed', () => isAway(first), 60_000)
    const noticedMs = Math.round(performance.now() - oneKilledAt)
    await eventually('the other gateway of us goes on', () => ofEu(us, oneKilledAt).length >= 40, 60_000)
    expect(await isReady(second)).toBe(true)
    metered += await askMetered([us.urls[1] as string], 10)
    await eventually('the gateway that is left has the whole room', () => us.running > (US_ROOM * 2) / 3, 60_000)
    const wholeRoomMs = Math.round(performance.now() - oneKilledAt)
    for (const health of ['away', 'ejected'])
      expect(await seenFrom(eu, 'spillway_replica_health_changes_total', { replica: second, health })).toBe(0)
    const gapMs = longestGapMs(us, oneKilledAt)

    // The second one, too: the region is away.
    const regionKilledAt = performance.now()
    await us.killGateway(1)
    await eventually('the loss of the region is noticed', () => isAway(second), 60_000)
    const regionNoticedMs = Math.round(performance.now() - regionKilledAt)
    const [before, begunThere] = [ours.completedCount, us.began.length]
    await eventually('eu goes on alone', () => ours.completedCount >= before + 20, 120_000)
    await eventually('who cannot wait is refused', () => hurried.answers.some(isRefused), 60_000)
    expect(us.began.length, 'nothing began there meanwhile').toBe(begunThere)

    // Both are back.
    const backAt = await Promise.all([us.startGateway(0), us.startGateway(1)])
    const finishedBefore = [await finishedAt(first), await finishedAt(second)] as const
    await eventually(
      'both gateways of us serve requests of eu again',
      async () =>
        (await finishedAt(first)) >= finishedBefore[0] + 5 && (await finishedAt(second)) >= finishedBefore[1] + 5,
      60_000,
    )
    const againMs = Math.round((ofEu(us, Math.min(...backAt))[0] as number) - Math.min(...backAt))
    metered += await askMetered(us.urls, 10)
    const minutes = (performance.now() - startedAt) / 60_000
    await Promise.all(loads.map((load) => load.stop()))

    // Every request has one ending, and a true one. Only clients of a gateway that was killed saw it break.
    const asked = [...ours.answers, ...hurried.answers]
    expect(asked.filter((one) => !isGood(one) && !isToldSo(one) && !isRefused(one))).toEqual([])
    const refused = asked.filter(isRefused)
    expect(refused.filter((one) => !hasReturn(one) && !hasNoReturn(one))).toEqual([])
    const early = ours.answers.filter(({ endedAt }) => endedAt < regionKilledAt)
    expect(early.filter(isRefused), 'who can wait is served while one gateway of us is left').toEqual([])
    expect(ours.answers.filter(isGood).length).toBeGreaterThan(100)
    const broken = theirs.answers.filter((one) => !isGood(one))
    expect(broken.filter(({ endedAt }) => endedAt < oneKilledAt || endedAt > Math.max(...backAt) + 1_000)).toEqual([])
    expect(broken.filter(({ url, endedAt }) => url === us.urls[1] && endedAt < regionKilledAt)).toEqual([])

    // Limits that the gateways share were kept through all of it.
    expect(eu.mostRunning).toBeLessThanOrEqual(EU_ROOM)
    expect(us.mostRunning).toBeLessThanOrEqual(US_ROOM)
    // One on credit for each of the four gateways that were started, as in `shared-limits.test.ts`.
    expect(metered).toBeLessThanOrEqual(METERED_BURST + Math.ceil(minutes) + 4)

    // Nothing is left behind.
    await eventually('nothing runs', async () => {
      const left = await Promise.all(
        [...eu.urls, ...us.urls].flatMap((url) => [
          gatewayMetric(url, 'spillway_requests_in_flight'),
          gatewayMetric(url, 'spillway_pool_in_flight'),
        ]),
      )
      return left.every((count) => count === 0) && eu.running + us.running === 0
    })

    const count = (is: (one: Answered) => boolean): number => asked.filter(is).length
    const figures =
      `${asked.length} requests of eu: ${count(isGood)} whole, ${count(isToldSo)} told that they were lost after their first token, ` +
      `${refused.length} refused, ${refused.filter(hasReturn).length} of them with Retry-After. One gateway of us killed: noticed after ${noticedMs} ms, no request of eu began ` +
      `in us for ${gapMs} ms at most, the other gateway had its room after ${wholeRoomMs} ms. Region killed: noticed after ` +
      `${regionNoticedMs} ms. Both back: a request of eu began there after ${againMs} ms. At most ${us.mostRunning} of ${US_ROOM} ` +
      `at the engine of us; ${metered} metered requests of ${METERED_BURST}.`
    await annotate(figures)
    process.stderr.write(`regions of gateways: ${figures}\n`)
  })
})
