import { describe, expect, it } from 'vitest'
import { compareOutputs } from './compare-outputs.ts'
import { compareAnswers } from './shadow.ts'

const compare = (
  [primary, finish]: readonly [string, string],
  [shadow, shadowFinish]: readonly [string, string],
  isStructured = false,
  keptMax = 100,
) => {
  const sideOf = (whole: string, finishReason: string) => ({
    kept: { releaseId: 'm@1', text: whole.slice(0, keptMax), length: whole.length, finishReason },
    whole,
  })
  const facts = { difference: compareAnswers(primary, shadow), isStructured }
  return compareOutputs(sideOf(primary, finish), sideOf(shadow, shadowFinish), facts)
}

describe('two outputs', () => {
  it('that are the same have no first difference', () => {
    const same = compare(['a weir', 'stop'], ['a weir', 'stop'])
    expect(same).toMatchObject({ isEqual: true, isSameFinish: true, sameWordsRatio: 1, lengthRatio: 1 })
    expect(same).not.toHaveProperty('firstAt')
    expect(same).not.toHaveProperty('isJson')
  })

  it.each([
    ['a weir', 'a dam', 2],
    ['a weir', 'a weir, low', 6],
    ['a weir', '', 0],
  ])('%j and %j differ from character %i on', (primary, shadow, firstAt) => {
    expect(compare([primary, 'stop'], [shadow, 'length'])).toMatchObject({
      isEqual: false,
      isSameFinish: false,
      firstAt,
    })
  })

  it('that differ behind the cut only are not equal, and no difference can be shown', () => {
    const pair = compare(['a weir', 'stop'], ['a wean', 'stop'], false, 3)
    expect(pair.isEqual).toBe(false)
    expect(pair).not.toHaveProperty('firstAt')
  })

  it('are read as JSON whole, where it was asked for', () => {
    expect(compare(['{"a":1}', 'stop'], ['{"a":1', 'length'], true, 2)).toMatchObject({
      isJson: { primary: true, shadow: false },
    })
  })
})
