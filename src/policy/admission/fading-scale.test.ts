import { describe, expect, it } from 'vitest'
import { EPOCH_US, FadingScale } from './fading-scale.ts'

describe('fading scale', () => {
  it('halves what is older by an epoch', () => {
    const scale = new FadingScale()
    let sum = 100 * scale.now
    expect(scale.advance(EPOCH_US)).toBeUndefined()
    sum += 100 * scale.now
    expect(sum / scale.now).toBe(150)
  })

  it('reads a steady rate as that rate, for hours', () => {
    const scale = new FadingScale()
    let sum = 0
    let worst = 0
    const stepUs = EPOCH_US / 100
    for (let now = 0; now < 2_000 * EPOCH_US; now += stepUs) {
      sum *= scale.advance(now) ?? 1
      sum += 5 * stepUs * scale.now
      if (now > 20 * EPOCH_US) worst = Math.max(worst, Math.abs(sum * scale.perUs(now) - 5))
    }
    expect(worst).toBeLessThan(0.1)
  })

  it('forgets all over a long silence', () => {
    const scale = new FadingScale()
    const sum = 1e9 * (scale.advance(5_000 * EPOCH_US) ?? 1)
    expect(sum * scale.perUs(5_000 * EPOCH_US)).toBeLessThan(1e-100)
  })
})
