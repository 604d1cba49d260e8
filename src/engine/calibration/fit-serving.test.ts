import { describe, expect, it } from 'vitest'
import type { GpuProfile, RooflineCoefficients } from '../gpu-profile.ts'
import { findGpuProfile } from '../gpu-profiles.ts'
import { stepUs } from '../step-time.ts'
import { fitRecording, fitServing } from './fit-serving.ts'
import type { MeasuredRequest, MeasuredStep } from './measurements.ts'
import { relativeErrors } from './step-errors.ts'

/** Recordings of a made-up engine whose serving terms are known: the fit has to find them again. */

const { coefficients } = findGpuProfile('h200-llama-8b') as GpuProfile
const kernels = coefficients as RooflineCoefficients
const TRUTH: RooflineCoefficients = {
  ...kernels,
  hostUs: 1_000,
  decodeUsPerSequence: 8,
  kvReadUsPerToken: 0.035,
  prefillBaseUs: 1_500,
  prefillFloorUs: 20_000,
  prefillFloorSharpness: 5,
  contextAttentionUsPerPair: 0.002,
  contextUsPerToken: 0,
}

const load = { decodeCount: 0, decodeTokens: 0, contextSum: 0, contextMax: 0 }
const noPrefill = { prefillTokens: 0, chunkPairs: 0, contextPairs: 0 }

function stepOf(partial: Partial<MeasuredStep['load']>, startUs = 0): MeasuredStep {
  const own = { ...load, ...noPrefill, ...partial }
  const kind = own.prefillTokens === 0 ? 'decode' : own.decodeCount === 0 ? 'prefill' : 'mixed'
  return { model: 'm', kind, load: own, measuredUs: stepUs(TRUTH, own), workload: 'made-up', startUs }
}

const decode = (count: number, context: number): MeasuredStep =>
  stepOf({ decodeCount: count, decodeTokens: count, contextSum: count * context, contextMax: context })

const mixed = (tokens: number, context: number, count: number): MeasuredStep =>
  stepOf({
    decodeCount: count,
    decodeTokens: count,
    contextSum: 900 * count,
    contextMax: 900,
    prefillTokens: tokens,
    chunkPairs: (tokens * tokens) / 2,
    contextPairs: tokens * context,
  })

const grid = <T>(as: readonly number[], bs: readonly number[], make: (a: number, b: number) => T): T[] =>
  as.flatMap((a) => bs.map((b) => make(a, b)))
const BATCHES = [1, 4, 8, 16, 32, 64, 100, 128, 160, 200, 256]
const decodes = grid(BATCHES, [200, 500, 800, 1_200, 2_000, 3_000], decode)
const prefills = grid([100, 300, 600, 1_000, 1_500, 1_900], [0, 500, 2_000], (tokens, context) =>
  [0, 16, 64, 200].map((count) => mixed(tokens, context, count)),
).flat()

/** Steps that no request explains keep what they say of themselves, as here. */
const fitSteps = (steps: readonly MeasuredStep[]) => fitServing(kernels, steps, [])

describe('fitting what an engine adds', () => {
  it('finds all seven terms, those per sequence and per token of context included', () => {
    const { terms, errors, kernelErrors } = fitSteps([...decodes, ...prefills])
    expect(terms.hostUs / TRUTH.hostUs).toBeCloseTo(1, 1)
    expect(terms.decodeUsPerSequence / TRUTH.decodeUsPerSequence).toBeCloseTo(1, 1)
    expect(terms.kvReadUsPerToken / TRUTH.kvReadUsPerToken).toBeCloseTo(1, 1)
    expect(terms.contextAttentionUsPerPair / TRUTH.contextAttentionUsPerPair).toBeCloseTo(1, 1)
    expect(errors.p90Error).toBeLessThan(0.01)
    expect(kernelErrors.p90Error).toBeGreaterThan(0.1)
  })

  it('counts decodes and prefills alike: many of one kind do not spoil the other', () => {
    const many = Array.from({ length: 40 }, () => prefills).flat()
    const { terms } = fitSteps([...decodes, ...many])
    const errors = relativeErrors({ ...kernels, ...terms }, decodes)
    expect(Math.max(...errors.map(Math.abs))).toBeLessThan(0.02)
  })

  it('leaves terms that the recording does not tell where the kernels have them', () => {
    const alone = Array.from({ length: 60 }, (_, i) => decode(1, 100 + i))
    const { terms } = fitSteps(alone)
    expect(terms.decodeUsPerSequence / kernels.decodeUsPerSequence).toBeCloseTo(1, 1)
    expect(Object.values(terms).every(Number.isFinite)).toBe(true)
  })
})

describe('a one-sided recording', () => {
  const warningsOf = (steps: readonly MeasuredStep[]): string => fitSteps(steps).warnings.join('\n')
  const good = [...decodes, ...prefills]

  it('is told from one that has all kinds', () => {
    // The steps of this file have no requests, which is a warning of its own.
    expect(warningsOf(good).split('\n')).toHaveLength(1)
    expect(warningsOf(good)).toMatch(/requests do not explain who was in each step/)
  })

  it.each([
    [
      '98 % mixed steps',
      [...Array.from({ length: 68 }, () => prefills).flat(), ...decodes.slice(0, 60)],
      /decode without a prefill/,
    ],
    [
      'few prefills',
      [...decodes, ...decodes, ...prefills.slice(0, 6)],
      /only 6 of 138 steps \(4\.3 %\) have a prefill/,
    ],
    ['small batches', [...good, ...good].filter((step) => step.load.decodeCount <= 32), /more than 32 sequences/],
  ])('of %s is warned of', (_, steps, warning) => {
    expect(warningsOf(steps)).toMatch(warning)
    expect(warningsOf(steps).split('\n')).toHaveLength(2)
  })
})

describe('a recording in files', () => {
  const requests: MeasuredRequest[] = Array.from({ length: 40 }, (_, i) => ({
    line: i + 2,
    workload: 'made-up',
    arrivalUs: i * 60_000,
    promptTokens: 200 + 37 * i,
    outputTokens: 20 + i,
    ttftUs: 1,
    e2eUs: 1,
  }))
  const stepRows = recordSteps(requests)
  const stepsCsv = ['workload,start_s,prefill_tokens,decode_batch,decode_context_sum,step_ms', ...stepRows].join('\n')
  const requestRows = requests.map((one) =>
    ['made-up', one.arrivalUs / 1e6, one.promptTokens, one.outputTokens, 0.1, 0.2].join(','),
  )
  const requestsCsv = ['workload,arrival_s,prompt_tokens,output_tokens,ttft_s,e2e_s', ...requestRows].join('\n')

  it('of our own engine is rebuilt from its requests, and fitted', () => {
    const answer = fitRecording(kernels, { steps: stepsCsv, requests: requestsCsv })
    expect(answer).toMatchObject({ kind: 'serving-fit', errors: { count: stepRows.length } })
    expect(answer.kind === 'serving-fit' && answer.warnings.join()).not.toMatch(/who was in each step/)
    expect(answer.kind === 'serving-fit' && answer.errors.medianError).toBeLessThan(0.01)
  })

  it.each([
    [
      'steps timed alone',
      'prefill_tokens,prefill_context,decode_batch,decode_context,step_ms\n1,0,0,0,1',
      requestsCsv,
      'steps',
      /at work/,
    ],
    ['too few steps', stepsCsv.split('\n').slice(0, 5).join('\n'), requestsCsv, 'steps', /at least 20 steps/],
    ['requests without columns', stepsCsv, 'a\n1', 'requests', /missing arrival_s/],
  ])('with %s is refused with the file', (_, steps, of, file, because) => {
    const answer = fitRecording(kernels, { steps, requests: of })
    expect(answer).toMatchObject({ kind: 'bad-csv', file })
    expect(answer.kind === 'bad-csv' && answer.because).toMatch(because)
  })
})

/** The log of a small engine with the same rules: first come, first served, 2,048 tokens a step, and the true times. */
function recordSteps(requests: readonly MeasuredRequest[]): string[] {
  const rows: string[] = []
  const decoding: { known: number; stepsLeft: number }[] = []
  let next = 0
  let computed = 0
  for (let nowUs = 0; next < requests.length || decoding.length > 0; ) {
    const contextSum = decoding.reduce((sum, member) => sum + member.known, 0)
    const step = { ...load, ...noPrefill, decodeCount: decoding.length, decodeTokens: decoding.length, contextSum }
    for (const member of decoding) {
      member.known++
      member.stepsLeft--
    }
    const ended = decoding.filter((member) => member.stepsLeft === 0)
    for (const member of ended) decoding.splice(decoding.indexOf(member), 1)
    for (let budget = 2_048 - step.decodeCount; budget > 0; ) {
      const request = requests[next]
      if (request === undefined || request.arrivalUs > nowUs) break
      const tokens = Math.min(budget, request.promptTokens - computed)
      step.prefillTokens += tokens
      step.chunkPairs += (tokens * tokens) / 2
      step.contextPairs += tokens * computed
      budget -= tokens
      computed += tokens
      if (computed < request.promptTokens) break
      decoding.push({ known: request.promptTokens + 1, stepsLeft: request.outputTokens - 1 })
      computed = 0
      next++
    }
    if (step.decodeCount + step.prefillTokens === 0) {
      nowUs = requests[next]?.arrivalUs as number
      continue
    }
    const us = stepUs(TRUTH, step)
    const cells = [nowUs / 1e6, step.prefillTokens, step.decodeCount, contextSum, us / 1e3]
    rows.push(['made-up', ...cells].join(','))
    nowUs += us
  }
  return rows
}
