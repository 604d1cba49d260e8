import { describe, expect, it } from 'vitest'
import { waitingKeysOf } from './waiting-keys.ts'

const lane = (keyId: string, count: number, tenantId = 't') => ({ orgId: 'o', tenantId, keyId, count })

describe('waitingKeysOf', () => {
  it('adds the bands of a key, names those with most, and counts the rest', () => {
    const lanes = [lane('a', 1), lane('b', 2), lane('a', 3), lane('c', 0), lane('d', 1)]
    expect(waitingKeysOf(lanes, 2)).toEqual({
      keys: [lane('a', 4), lane('b', 2)],
      otherKeyCount: 1,
      otherCount: 1,
    })
    expect(waitingKeysOf(lanes, 10)).toMatchObject({ otherKeyCount: 0, otherCount: 0 })
  })

  it('says nothing where nothing waits', () => {
    expect(waitingKeysOf([lane('a', 0)], 5)).toBeUndefined()
    expect(waitingKeysOf([], 5)).toBeUndefined()
  })
})
