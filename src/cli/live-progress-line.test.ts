import { describe, expect, it } from 'vitest'
import { timeLeftText } from './live-progress-line.ts'

describe('the time left', () => {
  it.each([
    [0.5, 10, 'about 10 s left'],
    [0.2, 10, 'about 40 s left'],
    [0.1, 60, 'about 9 min left'],
    [0.01, 600, 'about 17 h left'],
    [0.999, 2, 'about 1 s left'],
  ])('is told at the pace so far: %d done after %d s', (ratio, tookS, text) =>
    expect(timeLeftText(ratio, tookS)).toBe(text),
  )

  it.each([
    [0, 10],
    [Number.NaN, 10],
    [1, 10],
    [1.2, 10],
    [0.5, 0.9],
  ])('is not told when it is unknown or over: %d done after %d s', (ratio, tookS) =>
    expect(timeLeftText(ratio, tookS)).toBe(''),
  )
})
