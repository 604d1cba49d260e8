import { describe, expect, it } from 'vitest'
import { describeFaults, type FaultOptions, Faults, NO_FAULTS } from './engine-faults.ts'

function fates(options: Partial<FaultOptions>, count: number, seed = 1): string[] {
  const faults = new Faults({ ...NO_FAULTS, ...options }, seed)
  return Array.from({ length: count }, () => faults.nextFate())
}

const shareOf = (all: readonly string[], one: string): number => all.filter((fate) => fate === one).length / all.length

describe('Faults', () => {
  it('are none unless asked for', () => {
    expect(new Set(fates({}, 1_000))).toEqual(new Set(['serve']))
    expect(describeFaults(NO_FAULTS)).toEqual([])
  })

  it('come in the shares asked for, the same for a seed', () => {
    const all = fates({ failRatio: 0.2, hangRatio: 0.1 }, 10_000)
    expect(shareOf(all, 'fail')).toBeCloseTo(0.2, 1)
    expect(shareOf(all, 'hang')).toBeCloseTo(0.1, 1)
    expect(fates({ failRatio: 0.2, hangRatio: 0.1 }, 10_000)).toEqual(all)
    expect(fates({ failRatio: 0.2, hangRatio: 0.1 }, 10_000, 2)).not.toEqual(all)
  })

  it('do not move each other', () => {
    const failing = fates({ failRatio: 0.2 }, 1_000)
    const both = fates({ failRatio: 0.2, hangRatio: 0.3 }, 1_000)
    expect(both.map((fate) => fate === 'fail')).toEqual(failing.map((fate) => fate === 'fail'))
  })

  it.each([
    ['all fail', { failRatio: 1 }, ['fail', 'fail', 'fail', 'fail']],
    ['hang after two', { hangAfter: 2 }, ['serve', 'serve', 'hang', 'hang']],
    ['crash after one, whatever else', { crashAfter: 1, hangAfter: 1 }, ['serve', 'crash', 'crash', 'crash']],
    ['crash at once', { crashAfter: 0 }, ['crash', 'crash', 'crash', 'crash']],
  ])('%s', (_, options, expected) => expect(fates(options, 4)).toEqual(expected))

  it('are told in words', () => {
    expect(describeFaults({ failRatio: 0.025, hangRatio: 0.1, hangAfter: 3, crashAfter: 9 })).toEqual([
      '2.5 % of requests fail',
      '10 % of requests hang',
      'hangs after 3 requests',
      'crashes after 9 requests',
    ])
  })
})
