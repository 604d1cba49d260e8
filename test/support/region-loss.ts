import { afterAll, afterEach, expect } from 'vitest'
import { TestFolder } from './child.ts'
import { metricOf } from './engine-process.ts'
import { eventually } from './eventually.ts'
import { sampleValue } from './parse-exposition.ts'
import { Region, type RegionOptions } from './region.ts'
import { type Answered, RegionLoad } from './region-load.ts'
import { authorization, METRICS_KEY } from './start-platform.ts'

/**
 * Two regions of separate processes under load, and one is killed. What clients of the other one see: whoever had not
 * begun to get an answer gets a whole one, whoever had begun gets an error frame, and nobody is left hanging. Then it is
 * started again, and traffic returns by a slow start.
 */
export const EU = { name: 'eu', engines: 1, concurrencyMax: 2 }
export const US = { name: 'us', engines: 2, concurrencyMax: 64 }

/** Starts regions for the tests of one file, and kills what is left of them after each test. */
export function useRegions(): (options: Omit<RegionOptions, 'folder'>) => Promise<Region> {
  const folder = new TestFolder()
  const regions: Region[] = []
  afterEach(async () => {
    await Promise.all(regions.splice(0).map((region) => region.kill()))
  })
  afterAll(() => folder.remove())
  return async (options) => {
    const region = await Region.start({ folder, ...options })
    regions.push(region)
    return region
  }
}

const metricsOf = async (url: string): Promise<string> =>
  (await fetch(`${url}/metrics`, { headers: authorization(METRICS_KEY) })).text()

async function servedBy(region: Region): Promise<number> {
  const counts = await Promise.all(region.engineUrls.map((url) => metricOf(url, 'request_params_n_count')))
  return counts.reduce<number>((sum, count) => sum + (count ?? 0), 0)
}

async function valueAt({ url }: Region, name: string, labels: Record<string, string>): Promise<number> {
  return sampleValue(await metricsOf(url), name, labels) ?? 0
}

const isReadyAt = async (gateway: Region, replica: string): Promise<boolean> =>
  (await valueAt(gateway, 'spillway_replica_ready', { replica })) === 1

/** Room for two answers of this many tokens in eu: the rest goes to us, which is killed and started again. */
export async function killAndRestart(
  eu: Region,
  startUs: () => Promise<Region>,
  tokens: number,
): Promise<readonly Answered[]> {
  const us = await startUs()
  await eventually('eu knows us', () => isReadyAt(eu, 'us:llama'), 60_000)
  const load = new RegionLoad({ urls: [eu.url], clients: 16, tokens })
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
export function lostOf(answers: readonly Answered[]): readonly Answered[] {
  const isGood = ({ isWhole, errorCode, broken }: Answered): boolean =>
    isWhole && errorCode === undefined && broken === undefined
  const isToldSo = ({ status, errorCode, isWhole, broken, characters }: Answered): boolean =>
    status === 200 && errorCode === 'replica_lost' && isWhole && broken === undefined && characters > 0
  expect(answers.filter(isGood).length).toBeGreaterThan(30)
  return answers.filter((answer) => !isGood(answer) && !isToldSo(answer))
}
