import { afterEach, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { InsideEngine } from '../support/engine-process.ts'
import { eventually } from '../support/eventually.ts'
import {
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** A live server with two releases on simulated engines behind HTTP; the new one is made faulty. */

const ADMIN_KEY = 'sk-test-admin'
const closing: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
}, 60_000)

interface Settings {
  readonly rollout: Record<string, unknown>
  /** Flags of the canary's engine. */
  readonly canary?: readonly string[]
  /** What the engine of each stable pool may have in flight. */
  readonly stableLimits?: readonly number[]
}

async function start({ rollout, canary = [], stableLimits = [64] }: Settings): Promise<TestPlatform> {
  const startEngine = (...flags: readonly string[]) =>
    InsideEngine.start('--profile', 'h100-llama-8b', '--model', MODEL, ...flags)
  const engines = await Promise.all([startEngine(...canary), ...stableLimits.map(() => startEngine())])
  for (const engine of engines) closing.push(() => engine.stop())
  const [tried, ...stable] = engines as [InsideEngine, ...InsideEngine[]]
  const pool = (id: string, release: string, url: string, concurrencyMax = 64) => ({
    id,
    model: MODEL,
    release,
    backend: { kind: 'http-openai', upstreamModel: MODEL, timeoutMs: 20_000 },
    replicas: [`${url}/v1`],
    limit: { kind: 'fixed', concurrencyMax },
  })
  const platform = await startPlatform(
    testTree({
      admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
      models: [{ name: MODEL, releases: [{ version: '1' }, { version: '2' }], rollout: { stable: '1', ...rollout } }],
      pools: [
        ...stable.map(({ url }, i) => pool(`stable-${i}`, '1', url, stableLimits[i])),
        pool('tried', '2', tried.url),
      ],
    }),
  )
  closing.push(() => platform.close())
  return platform
}

const QUESTION = 'What is a weir? A weir is a low dam that holds the water of a river.'

const ask = (platform: TestPlatform, session: number, headers: Record<string, string> = {}, outputTokensMax = 8) =>
  postJson(
    `${platform.baseURL}/chat/completions`,
    { model: MODEL, messages: [{ role: 'user', content: QUESTION }], max_tokens: outputTokensMax, temperature: 0 },
    { 'x-session-id': `s${session}`, ...headers },
  )

it('rolls a canary back that only fails, and its clients see none of it', { timeout: 180_000 }, async () => {
  const platform = await start({ rollout: { canary: '2', steps: [30] }, canary: ['--fail-rate', '1'] })
  const seen = new Set<string>()
  const isOver = () =>
    platform.entries.some((entry) => entry.kind === 'rollout-changed' && entry.change === 'rolled-back')
  let session = 0
  await eventually(
    'it is rolled back',
    async () => {
      const responses = await Promise.all(Array.from({ length: 8 }, () => ask(platform, session++)))
      for (const response of responses) {
        seen.add(`${response.status} ${response.headers.get('x-spillway-release')}`)
        await response.text()
      }
      return isOver()
    },
    60_000,
  )
  expect(seen).toEqual(new Set([`200 ${MODEL}@1`]))
  const changes = platform.entries.filter((entry) => entry.kind === 'rollout-changed')
  expect(changes.map(({ change, by }) => `${change} ${by}`)).toEqual(['rolled-back judge'])
  expect(changes[0]?.evidence?.find(({ metric }) => metric === 'errors')?.pairs).toBeGreaterThan(0)
  const failed = platform.entries.filter((entry) => entry.kind === 'attempt-ended' && entry.releaseId === `${MODEL}@2`)
  expect(failed.length).toBeGreaterThanOrEqual(10)
  expect(failed.length).toBeLessThanOrEqual(50)
  expect(await platform.metric('spillway_rollout_percent', { model: MODEL, release: `${MODEL}@2` })).toBe(0)
  // From here on nobody is sent there any more.
  for (let i = 0; i < 8; i++) await (await ask(platform, i)).text()
  const later = platform.entries.filter((entry) => entry.kind === 'attempt-ended' && entry.releaseId === `${MODEL}@2`)
  expect(later.length).toBe(failed.length)
  // The judge's change opens the database, which takes a while, and is kept there.
  const kept = await eventually(
    'the change is kept',
    async () => {
      const url = `${platform.address}/admin/v1/changes?name=${MODEL}`
      const { data } = (await (await fetch(url, { headers: authorization(ADMIN_KEY) })).json()) as { data: object[] }
      return data.length > 0 && data
    },
    50_000,
  )
  expect(kept).toMatchObject([{ kind: 'rollout', by: 'judge' }])
})

it('rolls back a canary that fails every second attempt, with stable in three pools of different load', {
  timeout: 180_000,
}, async () => {
  const platform = await start({
    rollout: { canary: '2', steps: [5] },
    canary: ['--fail-rate', '0.5'],
    stableLimits: [6, 12, 64],
  })
  const isOver = () =>
    platform.entries.some((entry) => entry.kind === 'rollout-changed' && entry.change === 'rolled-back')
  // A steady load of long answers: the stable pools have some 6, 12 and 16 in flight, and the canary one or two.
  const statuses = new Set<number>()
  let session = 0
  const client = async (): Promise<void> => {
    while (session < 1_500 && !isOver()) {
      const response = await ask(platform, session++, {}, 64)
      statuses.add(response.status)
      await response.text()
    }
  }
  await Promise.all(Array.from({ length: 36 }, client))
  const attempts = platform.entries.filter((entry) => entry.kind === 'attempt-ended')
  const ofStable = attempts.filter(({ releaseId }) => releaseId === `${MODEL}@1`)
  expect(new Set(ofStable.map(({ replicaId }) => replicaId)).size).toBe(3)
  // The canary's own 500 is seen by no client. A refusal is none of the canary's: a machine that is busy may be late.
  expect([...statuses].filter((status) => status !== 200 && status !== 503)).toEqual([])
  const changes = platform.entries.filter((entry) => entry.kind === 'rollout-changed')
  expect(changes.map(({ change, because }) => `${change} ${because}`)).toEqual([
    'rolled-back worse: more of its attempts fail',
  ])
  const ofCanary = attempts.filter(({ releaseId }) => releaseId === `${MODEL}@2`)
  const failed = ofCanary.filter(({ ending }) => ending !== 'finished').length
  expect(failed).toBeLessThanOrEqual(50)
  // Nearly every attempt of the canary found a partner, however unlike their loads were.
  const pairs = changes[0]?.evidence?.find(({ metric }) => metric === 'errors')?.pairs ?? 0
  expect(pairs).toBeGreaterThanOrEqual(0.8 * ofCanary.length)
})

it('pins by a header, shows copies to the other release, and asks a holdout set', { timeout: 180_000 }, async () => {
  const platform = await start({
    rollout: {
      rules: [{ header: { name: 'x-beta', value: 'yes' }, release: '2' }],
      shadow: { release: '2', percent: 100 },
      holdout: { perMinute: 600, items: [{ id: 'weir', prompt: QUESTION, pattern: '\\w' }] },
    },
  })
  const releaseOf = async (headers: Record<string, string>) => {
    const response = await ask(platform, 1, headers)
    await response.text()
    return response.headers.get('x-spillway-release')
  }
  expect(await releaseOf({})).toBe(`${MODEL}@1`)
  expect(await releaseOf({ 'x-beta': 'no' })).toBe(`${MODEL}@1`)
  expect(await releaseOf({ 'x-beta': 'yes' })).toBe(`${MODEL}@2`)
  const copy = await eventually('a copy is compared', () =>
    platform.entries.find((entry) => entry.kind === 'shadow-ended' && entry.difference !== undefined),
  )
  expect(copy).toMatchObject({ releaseId: `${MODEL}@2`, outcome: 'completed' })
  const scored = await eventually('an item is scored', () =>
    platform.entries.find((entry) => entry.kind === 'holdout-evaluated'),
  )
  expect(scored).toMatchObject({ releaseId: `${MODEL}@1`, itemId: 'weir', score: 1 })
  expect(JSON.stringify(platform.entries)).not.toContain('low dam')
})
