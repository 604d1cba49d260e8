import { afterEach, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { askRollout as ask, QUESTION, ROLLOUT_ADMIN_KEY, startRollout } from '../support/rollout-platform.ts'
import { authorization, MODEL } from '../support/start-platform.ts'

/** A live server with two releases on simulated engines behind HTTP; the new one is made faulty. */

const closing: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
}, 60_000)

it('rolls a canary back that only fails, and its clients see none of it', { timeout: 180_000 }, async () => {
  const platform = await startRollout({ rollout: { canary: '2', steps: [30] }, canary: ['--fail-rate', '1'] }, closing)
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
      const { data } = (await (await fetch(url, { headers: authorization(ROLLOUT_ADMIN_KEY) })).json()) as {
        data: object[]
      }
      return data.length > 0 && data
    },
    50_000,
  )
  expect(kept).toMatchObject([{ kind: 'rollout', by: 'judge' }])
})

it('pins by a header, shows copies to the other release, and asks a holdout set', { timeout: 180_000 }, async () => {
  const platform = await startRollout(
    {
      rollout: {
        rules: [{ header: { name: 'x-beta', value: 'yes' }, release: '2' }],
        shadow: { release: '2', percent: 100 },
        holdout: { perMinute: 600, items: [{ id: 'weir', prompt: QUESTION, pattern: '\\w' }] },
      },
    },
    closing,
  )
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
