import { describe, expect, it } from 'vitest'
import { SlackWindow } from './slack-window.ts'

const MS = 1_000

describe('SlackWindow', () => {
  it('reads as in the header', () => {
    const window = new SlackWindow(2_000 * MS)
    window.observe(1_000 * MS, 80 * MS)
    window.observe(1_250 * MS, 20 * MS)
    expect(window.least(900 * MS, 1_100 * MS)).toBe(80 * MS)
    expect(window.least(900 * MS, 1_300 * MS)).toBe(20 * MS)
    expect(window.least(1_500 * MS, 1_900 * MS)).toBe(Number.POSITIVE_INFINITY)
  })

  it('does not count tickets that were late', () => {
    const window = new SlackWindow(2_000 * MS)
    window.observe(0, -1)
    expect(window.least(0, 0)).toBe(Number.POSITIVE_INFINITY)
    window.observe(0, 0)
    expect(window.least(0, 0)).toBe(0)
  })

  it('forgets what is older than the window, and is not misled by what comes late', () => {
    const window = new SlackWindow(1_000 * MS)
    window.observe(0, 5 * MS)
    for (let ms = 100; ms <= 5_000; ms += 100) window.observe(ms * MS, 50 * MS)
    window.observe(0, 1 * MS)
    expect(window.least(0, 5_000 * MS)).toBe(50 * MS)
  })
})
