import { describe, expect, it } from 'vitest'
import { realTokenizer } from '../../test/support/engine-tokenizer.ts'
import { TEXTS } from '../../test/support/texts.ts'
import { countTokens } from './count-tokens.ts'
import { encodeWhole } from './tokenizer.ts'

const tokenizer = await realTokenizer()
const never = () => false

describe('counting tokens', () => {
  it('counts each text as the engine does', () => {
    const texts = Object.values(TEXTS)
    const counts = texts.map((text) => encodeWhole(tokenizer, text).length)
    expect(countTokens(tokenizer, texts, { tokensMax: 1e9, isTimeUp: never })).toEqual({ counts, isOver: false })
  })

  it('stops soon after the bound', () => {
    let slices = 0
    const counting = {
      encode(slice: string) {
        slices++
        return tokenizer.encode(slice)
      },
    }
    const texts = ['water '.repeat(100), 'water '.repeat(100_000), 'never read']
    const counted = countTokens(counting, texts, { tokensMax: 1_000, isTimeUp: never })
    expect(counted).toMatchObject({ isOver: true })
    expect(counted?.counts).toHaveLength(2)
    expect(slices).toBeLessThan(20)
  })

  it('gives up when its time is up', () => {
    let asked = 0
    const counted = countTokens(tokenizer, ['water '.repeat(10_000)], { tokensMax: 1e9, isTimeUp: () => ++asked === 3 })
    expect(counted).toBeUndefined()
    expect(asked).toBe(3)
  })
})
