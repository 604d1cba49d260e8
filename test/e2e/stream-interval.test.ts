import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { framesOf, InsideEngine, postJson as postEngine } from '../support/engine-process.ts'
import { MODEL, postJson, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'

/** The gateway before an engine that sends eight tokens a frame, and before one that sends one. */

const PROFILE = 'h100-llama-8b'
const MESSAGES = [
  { role: 'user', content: 'A spillway lets water pass a dam. Say more about weirs, gates and chutes.' },
]
const chat = { model: MODEL, messages: MESSAGES, max_tokens: 97, ignore_eos: true, stream: true }

interface Frame {
  readonly choices: ReadonlyArray<{ readonly delta: { readonly content?: string } }>
  readonly usage?: { readonly completion_tokens: number } | null
}

describe.each([1, 8, 32])('an engine with --stream-interval %i', (interval) => {
  let engine: InsideEngine
  beforeAll(async () => {
    engine = await InsideEngine.start('--profile', PROFILE, '--model', MODEL, '--stream-interval', String(interval))
  })
  afterAll(() => engine.stop())

  const frames = async (stream_options: object): Promise<Frame[]> => {
    const response = await postEngine(`${engine.url}/v1/chat/completions`, { ...chat, stream_options })
    const seen: Frame[] = []
    for await (const { data } of framesOf(response)) if (data !== '[DONE]') seen.push(JSON.parse(data) as Frame)
    return seen
  }

  it('sends the first token, then so many in each frame, and counts them where it is asked to', async () => {
    const seen = await frames({ include_usage: true, continuous_usage_stats: true })
    const running = seen.filter(({ choices }) => choices.length > 0).map(({ usage }) => usage?.completion_tokens)
    const wanted = Array.from({ length: Math.ceil(96 / interval) }, (_, i) => Math.min(97, 1 + (i + 1) * interval))
    expect(running).toEqual([1, ...wanted])
    expect(seen.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 97 } })
  })

  it('counts at the end alone where nobody asked for more', async () => {
    const seen = await frames({ include_usage: true })
    expect(seen.filter(({ usage }) => usage != null).map(({ usage }) => usage?.completion_tokens)).toEqual([97])
  })

  describe.each(['auto', 'never'])('behind a gateway, runningUsage: %s', (runningUsage) => {
    let gateway: TestPlatform
    beforeAll(async () => {
      const pool = { model: MODEL, replicas: [`${engine.url}/v1`], limit: { kind: 'fixed', concurrencyMax: 64 } }
      const backend = { kind: 'http-openai', timeoutMs: 30_000, runningUsage }
      gateway = await startPlatform(upstreamTree([], { pools: [{ ...pool, backend }] }))
    })
    afterAll(() => gateway.close())

    it('has as many gaps as the answer has tokens after the first', async () => {
      for (let i = 0; i < 4; i++) {
        const response = await postJson(`${gateway.baseURL}/chat/completions`, { ...chat, seed: i })
        const text = await response.text()
        expect(text).toContain('[DONE]')
        const { usage, gaps, outcome } = await gateway.settled(response.headers.get('x-request-id')!)
        expect(outcome).toBe('completed')
        expect(usage.outputTokens).toBe(97)
        // Its tokenizer is not known before the first answer has ended.
        if (i === 0 && runningUsage === 'never') continue
        const count = gaps!.counts.reduce((sum, inBucket) => sum + inBucket, 0)
        expect(Math.abs(count - 96)).toBeLessThanOrEqual(runningUsage === 'auto' ? 0 : 9)
      }
    })
  })
})
