import { afterEach, expect, it } from 'vitest'
import { askRollout as ask, startRollout } from '../support/rollout-platform.ts'
import { MODEL } from '../support/start-platform.ts'

const closing: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
}, 60_000)

it('rolls back a canary that fails every second attempt, with stable in three pools of different load', {
  timeout: 180_000,
}, async () => {
  const platform = await startRollout(
    {
      rollout: { canary: '2', steps: [5] },
      canary: ['--fail-rate', '0.5'],
      stableLimits: [6, 12, 64],
    },
    closing,
  )
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
