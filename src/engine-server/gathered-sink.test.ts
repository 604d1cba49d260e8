import { describe, expect, it } from 'vitest'
import type { Delta } from '../domain/delta.ts'
import { GatheredSink } from './gathered-sink.ts'

const word = (index: number, content: string, finishReason: string | null = null): Delta => ({
  tokens: 1,
  choices: [{ index, content, finishReason }],
})

function gather(interval: number, deltas: readonly Delta[]): Array<readonly [number, string, number]> {
  const sent: Array<readonly [number, string, number]> = []
  const sink = new GatheredSink(
    {
      write: ({ tokens, choices }) => {
        sent.push([tokens, choices?.[0]?.content ?? '', sink.running(3).outputTokens])
        return undefined
      },
    },
    interval,
  )
  for (const delta of deltas) void sink.write(delta)
  return sent
}

describe('frames of an engine', () => {
  it('have the first token alone, then so many, then the rest', () => {
    const deltas = ['a', 'b', 'c', 'd', 'e', 'f'].map((text, i) => word(0, text, i === 5 ? 'stop' : null))
    expect(gather(3, deltas)).toEqual([
      [1, 'a', 1],
      [3, 'bcd', 4],
      [2, 'ef', 6],
    ])
    expect(gather(1, deltas).map(([tokens]) => tokens)).toEqual([1, 1, 1, 1, 1, 1])
  })

  it('are of one choice each', () => {
    const deltas = [word(0, 'a'), word(1, 'A'), word(0, 'b'), word(1, 'B', 'stop'), word(0, 'c', 'length')]
    expect(gather(8, deltas)).toEqual([
      [1, 'a', 1],
      [1, 'A', 1],
      [1, 'B', 2],
      [2, 'bc', 3],
    ])
  })
})
