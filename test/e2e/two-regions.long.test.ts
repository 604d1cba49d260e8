import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { TestFolder } from '../support/child.ts'
import { metricOf } from '../support/engine-process.ts'
import { eventually } from '../support/eventually.ts'
import { makeNamespaces } from '../support/network-namespaces.ts'
import { sampleValue } from '../support/parse-exposition.ts'
import { Region, type RegionOptions } from '../support/region.ts'
import { type Answered, RegionLoad } from '../support/region-load.ts'
import { freePort } from '../support/servers.ts'
import { SlowLink } from '../support/slow-link.ts'

/**
 * Two regions of separate processes under load, and one is killed. What clients of the other one see: whoever had not
 * begun to get an answer gets a whole one, whoever had begun gets an error frame, and nobody is left hanging. Then it is
 * started again, and traffic returns by a slow start.
 */
const folder = new TestFolder()
const regions: Region[] = []
const closers: Array<() => Promise<void> | void> = []

afterEach(async () => {
  await Promise.all(regions.splice(0).map((region) => region.kill()))
  for (const close of closers.splice(0)) await close()
})
afterAll(() => folder.remove())

const start = async (options: Omit<RegionOptions, 'folder'>): Promise<Region> => {
  const region = await Region.start({ folder, ...options })
  regions.push(region)
  return region
}

const isGood = ({ isWhole, errorCode, broken }: Answered): boolean =>
  isWhole && errorCode === undefined && broken === undefined

const metricsOf = async (url: string): Promise<string> => (await fetch(`${url}/metrics`)).text()

async function servedBy(region: Region): Promise<number> {
  const counts = await Promise.all(region.engines.map(({ url }) => metricOf(url, 'request_params_n_count')))
  return counts.reduce<number>((sum, count) => sum + (count ?? 0), 0)
}

async function valueAt({ url }: Region, name: string, labels: Record<string, string>): Promise<number> {
  return sampleValue(await metricsOf(url), name, labels) ?? 0
}

const isReadyAt = async (gateway: Region, replica: string): Promise<boolean> =>
  (await valueAt(gateway, 'spillway_replica_ready', { replica })) === 1

/** Room for two answers in eu: the rest goes to us, which is killed and started again. */
async function killAndRestart(eu: Region, startUs: () => Promise<Region>): Promise<readonly Answered[]> {
  const us = await startUs()
  await eventually('eu knows us', () => isReadyAt(eu, 'us:llama'), 60_000)
  const load = new RegionLoad(eu.url, 16, 120)
  await eventually('requests go over', async () => (await servedBy(us)) >= 10, 60_000)
  expect(await valueAt(us, 'spillway_requests_from_regions_total', { origin: 'eu' })).toBeGreaterThan(0)

  await us.kill()
  const before = load.completedCount
  await eventually('it is noticed', async () => !(await isReadyAt(eu, 'us:llama')), 60_000)
  await eventually('the one region goes on alone', () => load.completedCount >= before + 20, 120_000)
  const lost = await valueAt(eu, 'spillway_attempts_total', { replica: 'us:llama', ending: 'lost' })
  expect(lost, 'some were over there when it died').toBeGreaterThan(0)

  const health = { replica: 'us:llama', health: 'warming' }
  expect(await valueAt(eu, 'spillway_replica_health_changes_total', health)).toBe(0)
  const again = await startUs()
  await eventually('requests go over again', async () => (await servedBy(again)) >= 5, 60_000)
  expect(await valueAt(eu, 'spillway_replica_health_changes_total', health), 'warmed, not stormed').toBeGreaterThan(0)
  await load.stop()
  return load.answers
}

/** Only who had begun to read may be broken off, and is told so in the stream; most end whole. */
function lostOf(answers: readonly Answered[]): readonly Answered[] {
  expect(answers.filter(isGood).length).toBeGreaterThan(30)
  const isToldSo = ({ status, errorCode, isWhole, broken, characters }: Answered): boolean =>
    status === 200 && errorCode === 'replica_lost' && isWhole && broken === undefined && characters > 0
  return answers.filter((answer) => !isGood(answer) && !isToldSo(answer))
}

const at = (port: number): string => `http://127.0.0.1:${port}`
const EU = { name: 'eu', engines: 1, concurrencyMax: 2 }
const US = { name: 'us', engines: 2, concurrencyMax: 64 }
const LIMITS = { timeout: 240_000 }

describe('two regions, one of which is killed', () => {
  it('lose nobody of the other one, and find together again', LIMITS, async () => {
    const [euPort, usPort] = await Promise.all([freePort(), freePort()])
    const eu = await start({ ...EU, port: euPort, peer: { name: 'us', url: at(usPort) } })
    const startUs = () => start({ ...US, port: usPort, peer: { name: 'eu', url: at(euPort) } })
    expect(lostOf(await killAndRestart(eu, startUs))).toEqual([])
  })

  it('nor over a long line that breaks', LIMITS, async () => {
    const [euPort, usPort] = await Promise.all([freePort(), freePort()])
    const line = await SlowLink.to(usPort, { delayMs: 20, breakEvery: 5 })
    closers.push(() => line.close())
    const eu = await start({ ...EU, port: euPort, peer: { name: 'us', url: line.url } })
    const startUs = () => start({ ...US, port: usPort, peer: { name: 'eu', url: at(euPort) } })
    expect(lostOf(await killAndRestart(eu, startUs))).toEqual([])
    expect(line.brokenCount).toBeGreaterThan(0)
  })

  it('nor in networks of their own, with delay and loss between them', LIMITS, async ({ skip, annotate }) => {
    const made = makeNamespaces()
    if (typeof made === 'string') {
      skip(`no network namespaces here: ${made}`)
      return
    }
    closers.push(() => made.remove())
    if (made.withoutNetem !== undefined) {
      await annotate(`the line between the namespaces is a good one: ${made.withoutNetem}`)
      process.stderr.write(`two regions: namespaces without delay and loss: ${made.withoutNetem}\n`)
    }
    const [near, far] = made.sides
    const [euPort, usPort] = [18_080, 18_081]
    const eu = await start({ ...EU, ...near, port: euPort, peer: { name: 'us', url: `http://${far.host}:${usPort}` } })
    const peer = { name: 'eu', url: `http://${near.host}:${euPort}` }
    expect(lostOf(await killAndRestart(eu, () => start({ ...US, ...far, port: usPort, peer })))).toEqual([])
  })
})
