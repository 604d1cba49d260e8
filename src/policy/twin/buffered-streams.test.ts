import { describe, expect, test } from 'vitest'
import { BufferedStreams } from './buffered-streams.ts'

const SECOND = 1_000_000
const gathered = { firstTokenUs: 510_000, restUs: 2_000, tokens: 200 }
const streamed = { firstTokenUs: 30_000, restUs: 199 * 1_400, tokens: 200 }

describe('streams that are handed over when they are whole', () => {
  test('are noticed after a few, once, and forgotten when streams come as they are made', () => {
    const streams = new BufferedStreams()
    const news = [1, 2, 3, 4, 5].map((at) => streams.observe(at * SECOND, gathered))
    expect(news).toEqual([false, false, false, true, false])
    for (let at = 6; at < 40; at++) streams.observe(at * SECOND, streamed)
    expect(streams.isUsual).toBe(false)
  })

  test('are not taken for a fast engine, nor for short answers in one frame', () => {
    const streams = new BufferedStreams()
    for (let at = 0; at < 50; at++) {
      streams.observe(at * SECOND, streamed)
      streams.observe(at * SECOND, { ...gathered, tokens: 32 })
    }
    expect(streams.isUsual).toBe(false)
  })
})
