import { describe, expect, it } from 'vitest'
import { makeRequest } from '../../test/support/requests.ts'
import { Cancellation } from '../base/cancellation.ts'
import type { Delta } from '../domain/delta.ts'
import type { Plan } from '../domain/plan.ts'
import type { Ending } from '../lifecycle/ports.ts'
import { makeGenerateReader } from '../wire/oip.ts'
import { TokenLength } from '../wire/token-length.ts'
import { readUpstream } from '../wire/upstream.ts'
import type { AnswerFormat } from './http-answer-reader.ts'
import { runAttempt } from './http-attempt.ts'

const controller = { aborted: false, abort() {}, pause() {}, resume() {} } as never
const replica = { id: 'r-0', poolId: 'p', model: 'm', releaseId: 'm@1', region: 'local' }

/** Reads these bodies as one answer: a stream, or one document. */
async function read(format: AnswerFormat, bodies: readonly unknown[], isStreamed = true) {
  const deltas: Delta[] = []
  const request = makeRequest({ isStreamed, text: { body: {} } })
  const plan = { outputTokensMax: 200, estimate: { promptTokens: 20 } } as Plan
  const ending: Ending = await runAttempt({
    call: {
      lease: { id: 1, ticketId: 'req_1', replica },
      request,
      plan,
      sink: { write: (delta) => void deltas.push(delta) },
      cancellation: new Cancellation(),
    },
    format,
    clock: undefined,
    dispatch: (reader) => {
      const type = isStreamed ? 'text/event-stream' : 'application/json'
      reader.onResponseStart?.(controller, 200, { 'content-type': type }, 'OK')
      for (const body of bodies) {
        const text = typeof body === 'string' ? body : JSON.stringify(body)
        reader.onResponseData?.(controller, Buffer.from(isStreamed ? `data: ${text}\n\n` : text))
      }
      reader.onResponseEnd?.(controller, {})
    },
  })
  return { ending, tokens: deltas.map(({ tokens }) => tokens) }
}

const redact = (text: string): string => text

describe('an engine that counts the prompt alone, as TensorRT-LLM does in streams', () => {
  it('is counted by its text', async () => {
    const format = { ...makeGenerateReader(200), redact, tokenLength: new TokenLength() }
    const frames = [4, 36, 36].map((bytes) => ({ text_output: 'x'.repeat(bytes), num_input_tokens: 9 }))
    const { ending, tokens } = await read(format, frames)
    expect(tokens.reduce((sum, count) => sum + count, 0)).toBe(16)
    expect(ending).toEqual({ kind: 'finished', usage: { promptTokens: 9, cachedTokens: 0, outputTokens: 16 } })
  })

  it('is believed where it counts its frames', async () => {
    const format = { ...makeGenerateReader(200), redact, tokenLength: new TokenLength() }
    const frames = [1, 8, 8].map((num_output_tokens) => ({
      text_output: 'words',
      num_input_tokens: 9,
      num_output_tokens,
    }))
    const { ending, tokens } = await read(format, frames)
    expect(tokens.slice(0, 3)).toEqual([1, 8, 8])
    expect(ending).toMatchObject({ usage: { outputTokens: 17 } })
  })

  it('is not believed where it counts without end', async () => {
    const format = { ...makeGenerateReader(200), redact, tokenLength: new TokenLength() }
    const endless = '{"text_output":"words","num_input_tokens":1e999,"num_output_tokens":1e999}'
    const { ending } = await read(format, [endless, endless])
    expect(ending).toEqual({ kind: 'finished', usage: undefined })
  })
})

describe('an answer in one piece', () => {
  const choices = [{ index: 0, message: { role: 'assistant', content: 'x'.repeat(90) }, finish_reason: 'stop' }]
  const format = () => ({ read: readUpstream, redact, tokenLength: new TokenLength() })

  it('has the tokens that its engine counted, and teaches how long they are', async () => {
    const known = format()
    const usage = { prompt_tokens: 9, completion_tokens: 30 }
    expect((await read(known, [{ choices, usage }], false)).tokens).toEqual([30])
    expect(known.tokenLength.bytesPerToken).toBe(3)
  })

  it('has no tokens that cannot be, whatever its engine counts', async () => {
    const usage = { prompt_tokens: 1e300, completion_tokens: 30, prompt_tokens_details: { cached_tokens: 2e9 } }
    const { ending } = await read(format(), [{ choices, usage }], false)
    expect(ending).toMatchObject({ usage: { promptTokens: 0, cachedTokens: 0, outputTokens: 30 } })
  })

  it('is counted by its text where its engine says nothing', async () => {
    expect((await read(format(), [{ choices }], false)).tokens).toEqual([20])
  })
})
