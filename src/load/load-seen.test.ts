import { describe, expect, it } from 'vitest'
import { englishTokens } from '../../test/support/framed-engine.ts'
import { makeRequest } from '../../test/support/requests.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { TokenLengths } from '../wire/token-length.ts'
import { type LoadEnding, LoadReader } from './http-load-reader.ts'
import { LoadSeen } from './load-seen.ts'

const controller = { aborted: false, abort() {}, pause() {}, resume() {} } as never

/** What a client sees of answers with a token every 10 ms, in frames of so many. */
async function see(frameTokens: number, field = 'content') {
  const lengths = new TokenLengths()
  let seen: LoadSeen | undefined
  let ending: LoadEnding | undefined
  for (let answer = 0; answer < 3; answer++) {
    const clock = new VirtualClock(0)
    seen = new LoadSeen(clock, makeRequest({}))
    seen.onEnd = (told) => {
      ending = told
    }
    const reader = new LoadReader(seen, lengths)
    const send = (data: string) => reader.onResponseData(controller, Buffer.from(`data: ${data}\n\n`))
    reader.onResponseStart(controller, 200, { 'content-type': 'text/event-stream' })
    const tokens = englishTokens(97)
    for (let from = 0; from < tokens.length; ) {
      const to = Math.min(tokens.length, from === 0 ? 1 : from + frameTokens)
      const delta = { [field]: tokens.slice(from, to).join('') }
      clock.at((to - 1) * 10_000, () => send(JSON.stringify({ choices: [{ index: 0, delta, finish_reason: null }] })))
      from = to
    }
    clock.at(970_000, () => {
      send('{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}')
      send('{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":98}}')
      send('[DONE]')
    })
    await clock.run()
  }
  return seen!.settled(ending!)
}

describe('what a client measures of one answer', () => {
  it.each([
    [1, 'content'],
    [4, 'content'],
    [8, 'content'],
    [32, 'content'],
    [8, 'reasoning_content'],
  ])('frames of %i tokens in %s: the time of a token', async (frameTokens, field) => {
    const { gaps, usage, outcome } = await see(frameTokens, field)
    const count = gaps!.counts.reduce((sum, inBucket) => sum + inBucket, 0)
    expect(outcome).toBe('completed')
    expect(usage.outputTokens).toBe(98)
    expect(Math.abs(gaps!.sumUs / count - 10_000)).toBeLessThan(500)
    expect(gaps!.maxUs).toBeLessThan(30_000)
  })
})
