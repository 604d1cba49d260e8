import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { metricOf, postJson, SpillwayProcess } from '../support/engine-process.ts'

/** `spillway engine` with micro-batches: BATCH_TIMEOUT_MS is a wait that every batch of an idle engine has. */

const WINDOW_MS = 300

describe('an engine server with micro-batches', () => {
  let engine: SpillwayProcess
  beforeAll(async () => {
    const words = ['engine', '--batching', 'micro-batch', '--profile', 'h200-llama-1b', '--model', 'm']
    engine = await SpillwayProcess.startWith({ BATCH_TIMEOUT_MS: `${WINDOW_MS}` }, ...words)
  })
  afterAll(() => engine.stop())

  const complete = () =>
    postJson(`${engine.url}/v1/completions`, { model: 'm', prompt: 'Dams hold.', max_tokens: 4, ignore_eos: true })

  it('says so, gathers, and then answers', async () => {
    expect(engine.said).toContain(`after a window of ${WINDOW_MS} ms`)
    const answers = await Promise.all([complete(), complete()])
    expect(answers.map(({ status }) => status)).toEqual([200, 200])
    expect(await metricOf(engine.url, 'request_success_total', { finished_reason: 'length' })).toBe(2)
    // The first of a batch waits for the whole window: no luck is needed for that.
    const ttftS = await metricOf(engine.url, 'time_to_first_token_seconds_sum')
    expect(ttftS).toBeGreaterThanOrEqual(WINDOW_MS / 1_000)
  })
})
