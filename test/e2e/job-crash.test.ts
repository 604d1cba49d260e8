import { expect, it } from 'vitest'
import { expectWholeJob } from '../support/killed-job.ts'

/** Every start takes seconds: `job-crash.long.test.ts` kills more often, `bench/experiments/jobs-crash.ts` ten times. */
it('a job whose only process is killed has every line once in its files, and charges none twice', async () => {
  await expectWholeJob(120, [40])
  expect.assertions(4)
}, 240_000)
