import { expect, it } from 'vitest'
import type { Delta } from '../domain/delta.ts'
import type { Sink } from '../lifecycle/ports.ts'
import { KeepingSink } from './keeping-sink.ts'

const USAGE = { promptTokens: 1, cachedTokens: 0, outputTokens: 2 }
const REFUSAL = { code: 'replica-lost', because: 'it broke', blame: 'platform', retryAfterUs: undefined } as const
const text = (content: string): Delta => ({ tokens: 1, choices: [{ index: 0, content, finishReason: null }] })

function given(sizeMax = 100, isStreamed = true) {
  const calls: string[] = []
  const slow = Promise.resolve()
  const inner: Sink = {
    start: (head) => void calls.push(`start ${head.model}`),
    write(delta) {
      calls.push(`write ${delta.choices?.[0]?.content}`)
      return slow
    },
    finish: () => void calls.push('finish'),
    fail: (refusal) => void calls.push(`fail ${refusal.code}`),
  }
  const sink = new KeepingSink(inner, {
    sizeMax,
    isStreamed,
    onFinished: ({ joined, document }, usage, head) =>
      void calls.push(`kept ${document?.json ?? joined.whole()[0]?.content} ${usage.outputTokens} ${head?.model}`),
    onTooLarge: () => void calls.push('too large'),
  })
  sink.start({ model: 'm', rung: 'full' })
  return { sink, calls, slow }
}

it('serves the client first, with its backpressure, and hands the answer over at its end', () => {
  const { sink, calls, slow } = given()
  expect(sink.write(text('a'))).toBe(slow)
  void sink.write(text('b'))
  expect(sink.write({ tokens: 3 })).toBe(slow)
  sink.finish(USAGE)
  expect(calls).toEqual(['start m', 'write a', 'write b', 'write undefined', 'finish', 'kept ab 2 m'])
})

it('hands over no answer that fails', () => {
  const { sink, calls } = given()
  void sink.write(text('a'))
  sink.fail(REFUSAL)
  expect(calls).toEqual(['start m', 'write a', 'fail replica-lost'])
})

it('drops an answer that grows too large, and says so when it has ended', () => {
  const { sink, calls } = given(3)
  for (const part of ['ab', 'cd', 'e']) void sink.write(text(part))
  sink.finish(USAGE)
  expect(calls).toEqual(['start m', 'write ab', 'write cd', 'write e', 'finish', 'too large'])
})

it('keeps the document of an engine that did not stream as it was written', () => {
  const { sink, calls } = given(100, false)
  void sink.write({ ...text('a'), frame: { json: '{"own":"text"}', keepsModel: true } })
  sink.finish(USAGE)
  expect(calls.at(-1)).toBe('kept {"own":"text"} 2 m')
  const large = given(10, false)
  void large.sink.write({ ...text('a'), frame: { json: '{"own":"text"}', keepsModel: true } })
  large.sink.finish(USAGE)
  expect(large.calls.at(-1)).toBe('too large')
})
