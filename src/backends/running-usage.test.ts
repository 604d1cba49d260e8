import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { answers, type Behaviour, FakeUpstream, fails } from '../../test/support/fake-upstream.ts'
import { makeRequest } from '../../test/support/requests.ts'
import { Cancellation } from '../base/cancellation.ts'
import type { Plan } from '../domain/plan.ts'
import { FULL_RUNG } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import type { Ending } from '../lifecycle/ports.ts'
import { TokenLength } from '../wire/token-length.ts'
import { HttpOpenAiBackend, type HttpOpenAiOptions } from './http-openai.ts'
import { RunningUsage } from './running-usage.ts'

const replica = { id: 'r-0', poolId: 'p', model: 'm', releaseId: 'm@1', region: 'local' }
const VLLM_PAGE = '# HELP vllm:num_requests_running x\nvllm:num_requests_running{engine="0"} 3\n'
const STREAM = makeRequest({ isStreamed: true })

describe('who is asked for the usage in every frame', () => {
  const asked = (page: string | undefined, wish?: 'auto' | 'always' | 'never', request: Request = STREAM): boolean => {
    const running = new RunningUsage(wish)
    if (page !== undefined) running.readPage(page)
    return running.isAskedOf(request, new TokenLength())
  }

  it.each([
    ['vLLM', VLLM_PAGE, true],
    ['SGLang', 'sglang:num_running_reqs 1\n', true],
    ['llama.cpp', 'llamacpp:requests_processing 1\n', false],
    ['a page that names vLLM elsewhere', '# vllm:\nx{engine="vllm:"} 1\n', false],
    ['an engine without metrics', undefined, false],
  ])('%s', (_, page, isAsked) => expect(asked(page)).toBe(isAsked))

  it('whoever the configuration names, and nobody that it does not', () => {
    expect([asked(undefined, 'always'), asked(VLLM_PAGE, 'never')]).toEqual([true, false])
  })

  it('no whole answers, and not for several choices', () => {
    expect(asked(VLLM_PAGE, 'auto', makeRequest({ isStreamed: false }))).toBe(false)
    expect(asked(VLLM_PAGE, 'auto', makeRequest({ isStreamed: true, choiceCount: 2 }))).toBe(false)
  })

  it('nobody whose frames are known to be tokens', () => {
    const known = new TokenLength()
    known.observe({ bytes: 400, frames: 100, tokens: 100 })
    expect(new RunningUsage('always').isAskedOf(STREAM, known)).toBe(false)
  })
})

describe('an engine over HTTP', () => {
  let upstream: FakeUpstream
  let backend: HttpOpenAiBackend
  beforeEach(async () => {
    upstream = await FakeUpstream.start()
  })
  afterEach(async () => {
    await backend.close()
    await upstream.close()
  })

  const ask = (): Promise<Ending> => {
    const messages = [{ role: 'user', content: 'Hello?' }]
    const request = makeRequest({ isStreamed: true, text: { body: { model: 'm', messages, stream: true } } })
    const estimate = { promptTokens: 20, cachedTokens: 0, outputTokens: 9, outputTokensHigh: 9, cost: 60, engineUs: 0 }
    const { segments } = request
    const kept = { segments, keptSegments: [0], outputTokensMax: 50 }
    const plan: Plan = { rung: FULL_RUNG, model: 'm', releaseId: 'm@1', ...kept, estimate }
    const sink = { write: () => undefined }
    const lease = { id: 1, ticketId: 'req_1', replica }
    return backend.generate({ lease, request, plan, sink, cancellation: new Cancellation() })
  }
  const start = (options: Partial<HttpOpenAiOptions> = {}): void => {
    backend = new HttpOpenAiBackend({ url: upstream.url, upstreamModel: 'theirs', runningUsage: 'always', ...options })
  }
  const wishes = (): unknown[] =>
    upstream.seen.map(
      ({ body }) => (body['stream_options'] as Record<string, unknown> | undefined)?.['continuous_usage_stats'],
    )

  it('is asked, beside the usage at the end', async () => {
    start()
    await ask()
    expect(upstream.seen[0]?.body['stream_options']).toEqual({ include_usage: true, continuous_usage_stats: true })
  })

  it('that refuses what it does not know is asked without, once and for all', async () => {
    start()
    const strict: Behaviour = (call) => {
      const options = call.body['stream_options'] as object
      const words = { message: "Extra inputs are not permitted, field: 'stream_options.continuous_usage_stats'" }
      return 'continuous_usage_stats' in options ? fails(400, { error: words })(call) : answers()(call)
    }
    upstream.behaviour = strict
    expect([(await ask()).kind, (await ask()).kind]).toEqual(['finished', 'finished'])
    expect(wishes()).toEqual([true, undefined, undefined])
  })

  it('that finds fault with the request itself is asked twice at most, and not at all once it took the wish', async () => {
    start()
    upstream.behaviour = fails(400, { error: { message: 'temperature must be at most 2' } })
    expect((await ask()).kind).toBe('refused')
    expect(wishes()).toEqual([true, undefined])
    upstream.behaviour = answers()
    await ask()
    upstream.behaviour = fails(422, { error: { message: 'temperature must be at most 2' } })
    expect((await ask()).kind).toBe('refused')
    expect(wishes()).toEqual([true, undefined, true, true])
  })

  it('that is not asked for usage at all is not asked here', async () => {
    start({ style: { asksUsage: false } })
    await ask()
    expect(upstream.seen[0]?.body).not.toHaveProperty('stream_options')
  })
})
