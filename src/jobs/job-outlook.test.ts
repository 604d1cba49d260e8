import { describe, expect, it } from 'vitest'
import type { Job } from '../domain/job.ts'
import { decideLineBand } from './job-outlook.ts'

const HOUR_MS = 3_600_000

/** A job of 50,000 lines with a window of 24 h, begun at 0. */
const jobWith = (completed: number, others: Partial<Job> = {}): Job => ({
  id: 'batch_1',
  tenantId: 'a',
  caller: '{}',
  endpoint: '/v1/chat/completions',
  state: 'in_progress',
  createdAtMs: 0,
  expiresAtMs: 24 * HOUR_MS,
  times: { in_progress: 0 },
  metadata: {},
  inputFileId: 'file-1',
  outputFileId: undefined,
  errorFileId: undefined,
  outputKeptS: undefined,
  counts: { total: 50_000, completed, failed: 0 },
  faults: [],
  model: undefined,
  tokens: 0,
  ending: undefined,
  ...others,
})

describe('the band of a job’s next lines', () => {
  it.each([
    [10_000, 8, 'standard'],
    [30_000, 14, 'standard'],
    [35_000, 15, 'offline'],
    [49_999, 23, 'offline'],
    [1, 0.01, 'offline'],
    [1, 0.02, 'standard'],
    [0, 11, 'offline'],
    [0, 13, 'standard'],
  ] as const)('%i lines done after %f h: %s', (done, hours, band) => {
    expect(decideLineBand(jobWith(done), hours * HOUR_MS, true)).toBe(band)
    expect(decideLineBand(jobWith(done), hours * HOUR_MS, false)).toBe('offline')
  })

  it('counts lines that failed as done', () => {
    const counts = { total: 50_000, completed: 1_000, failed: 34_000 }
    expect(decideLineBand(jobWith(0, { counts }), 15 * HOUR_MS, true)).toBe('offline')
  })

  it('is offline for a job that does not run yet', () => {
    expect(decideLineBand(jobWith(0, { state: 'validating', times: {} }), 13 * HOUR_MS, true)).toBe('offline')
  })
})
