import { describe, expect, it } from 'vitest'
import { parseExposition, sampleValue } from '../../test/support/parse-exposition.ts'
import { EngineDriver } from '../backends/engine-driver.ts'
import { Rng } from '../base/rng.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { Engine } from '../engine/engine.ts'
import type { EngineLimits } from '../engine/engine-state.ts'
import type { EngineView } from '../engine/engine-view.ts'
import { findGpuProfile } from '../engine/gpu-profiles.ts'
import { EngineMetrics } from './engine-metrics.ts'

const LIMITS: EngineLimits = { sequencesMax: 8, tokenBudget: 512, blockCount: 1_000, blockTokens: 16 }
const ME = { model_name: 'llama', engine: '0' }

interface Submission {
  readonly at: number
  readonly promptTokens: number
  readonly outputTokens: number
  readonly prefixHashes?: readonly number[]
}

/** Runs these sequences in virtual time; the numbers as a scraper would see them at the end. */
async function run(submissions: readonly Submission[], limits: Partial<EngineLimits> = {}) {
  const clock = new VirtualClock()
  const whole = { ...LIMITS, ...limits }
  const metrics = new EngineMetrics({ model: 'llama', contextTokensMax: 4_096, limits: whole })
  const engine = new Engine({ coefficients: findGpuProfile('h100-llama-8b')!.coefficients, limits: whole })
  const driver = new EngineDriver(engine, clock, metrics)
  metrics.watch(() => driver.view())
  for (const [i, { at, ...spec }] of submissions.entries()) {
    clock.at(at, () => {
      driver.submit({ ...spec, id: `s${i}`, reports: 'every-step' }, () => {})
    })
  }
  const value = (name: string, labels: Record<string, string> = {}) =>
    sampleValue(metrics.text(), `vllm:${name}`, { ...ME, ...labels })
  return { clock, driver, metrics, value }
}

describe('engine metrics', () => {
  it('tell one sequence in all its numbers, as the engine timed it', async () => {
    const { clock, value } = await run([{ at: 1_000, promptTokens: 100, outputTokens: 11 }])
    await clock.run()
    const [ttft, decode, whole] = ['time_to_first_token', 'request_decode_time', 'e2e_request_latency'].map(
      (name) => value(`${name}_seconds_sum`) as number,
    )
    expect(ttft).toBeGreaterThan(0.001)
    expect(whole! * 1e6).toBeCloseTo((ttft! + decode!) * 1e6, 0)
    expect(value('request_queue_time_seconds_sum')).toBe(0)
    expect(value('request_prefill_time_seconds_sum')).toBe(ttft)
    expect(value('request_inference_time_seconds_sum')).toBe(whole)
    expect(value('inter_token_latency_seconds_count')).toBe(10)
    expect(value('time_per_output_token_seconds_count')).toBe(10)
    expect(value('inter_token_latency_seconds_sum')).toBe(decode)
    expect(value('request_time_per_output_token_seconds_sum')).toBeCloseTo(decode! / 10, 9)
    expect([value('prompt_tokens_total'), value('generation_tokens_total')]).toEqual([100, 11])
    expect([value('request_prompt_tokens_sum'), value('request_generation_tokens_sum')]).toEqual([100, 11])
    expect([value('iteration_tokens_total_count'), value('iteration_tokens_total_sum')]).toEqual([11, 111])
  })

  it('tell how long each waited: with one place, as long as the one before ran', async () => {
    const three = Array.from({ length: 3 }, () => ({ at: 0, promptTokens: 64, outputTokens: 30 }))
    const { clock, value } = await run(three, { sequencesMax: 1 })
    await clock.run(60_000)
    expect([value('num_requests_running'), value('num_requests_waiting')]).toEqual([1, 2])
    expect(value('kv_cache_usage_perc')).toBeGreaterThan(0)
    expect(value('gpu_cache_usage_perc')).toBe(value('kv_cache_usage_perc'))
    await clock.run()
    const alone = (value('request_inference_time_seconds_sum') as number) / 3
    // The second waits for one, the third for two.
    expect(value('request_queue_time_seconds_sum')).toBeCloseTo(3 * alone, 5)
    expect(value('e2e_request_latency_seconds_sum')).toBeCloseTo(6 * alone, 5)
    expect([value('num_requests_running'), value('kv_cache_usage_perc')]).toEqual([0, 0])
  })

  it('keep the parts of every request equal to the whole, whatever is preempted', async () => {
    const rng = Rng.stream(7, 'arrivals')
    const many = Array.from({ length: 200 }, () => ({
      at: rng.below(4_000_000),
      promptTokens: 1 + rng.below(300),
      outputTokens: 1 + rng.below(200),
    }))
    const { clock, value } = await run(many, { blockCount: 60 })
    await clock.run()
    expect(value('num_preemptions_total')).toBeGreaterThan(0)
    const sum = (name: string) => value(`${name}_seconds_sum`) as number
    const parts = sum('request_queue_time') + sum('request_prefill_time') + sum('request_decode_time')
    expect(parts).toBeCloseTo(sum('e2e_request_latency'), 5)
    expect(sum('time_to_first_token')).toBeCloseTo(sum('request_queue_time') + sum('request_prefill_time'), 5)
    expect(value('request_prefill_time_seconds_count')).toBe(200)
    expect(value('request_generation_tokens_sum')).toBe(
      many.reduce((total, { outputTokens }) => total + outputTokens, 0),
    )
  })

  it('count what the cache gave', async () => {
    const prefixHashes = [1, 2, 3, 4, 5, 6]
    const twice = [0, 1_000_000].map((at) => ({ at, promptTokens: 100, outputTokens: 2, prefixHashes }))
    const { clock, value } = await run(twice)
    await clock.run()
    expect([value('prefix_cache_queries_total'), value('prefix_cache_hits_total')]).toEqual([200, 96])
    expect([value('prompt_tokens_total'), value('prompt_tokens_cached_total')]).toEqual([200, 96])
  })

  it('forget who leaves, and do not count them as finished', async () => {
    const { clock, driver, metrics, value } = await run([{ at: 0, promptTokens: 100, outputTokens: 1_000 }])
    await clock.run(50_000)
    driver.abort('s0')
    metrics.finished('stop')
    expect(value('num_requests_running')).toBe(0)
    expect(value('e2e_request_latency_seconds_count')).toBe(0)
    expect(value('request_success_total', { finished_reason: 'stop' })).toBe(1)
    expect(value('request_success_total', { finished_reason: 'abort' })).toBe(0)
  })

  it('show speculation only while there is some', async () => {
    const { metrics, driver } = await run([])
    expect(metrics.text()).not.toContain('spec_decode')
    const speculating = new EngineMetrics({ model: 'llama', contextTokensMax: 4_096, limits: LIMITS })
    const speculation = { drafts: 10, draftTokens: 30, acceptedTokens: 18, acceptedByPosition: [9, 6, 3] }
    speculating.watch(() => ({ ...driver.view(), speculation }) as EngineView)
    const text = speculating.text()
    const value = (name: string, labels = {}) =>
      sampleValue(text, `vllm:spec_decode_num_${name}_total`, { ...ME, ...labels })
    expect(['drafts', 'draft_tokens', 'accepted_tokens'].map((name) => value(name))).toEqual([10, 30, 18])
    expect(value('accepted_tokens_per_pos', { position: '2' })).toBe(3)
  })

  it('are well-formed, and say what the cache is', async () => {
    const { metrics } = await run([])
    const families = parseExposition(metrics.text())
    expect(families.get('vllm:cache_config_info')?.samples[0]?.labels).toMatchObject({
      block_size: '16',
      num_gpu_blocks: '1000',
    })
    expect(families.get('vllm:iteration_tokens_total')?.kind).toBe('histogram')
  })
})
