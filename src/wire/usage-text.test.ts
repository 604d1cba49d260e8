import { describe, expect, it } from 'vitest'
import type { Usage } from '../domain/delta.ts'
import { messagesUsageText, responsesUsageText } from './native-usage.ts'
import { isAsTold, usageText } from './usage-text.ts'

const COUNTS = { promptTokens: 9, cachedTokens: 4, outputTokens: 2 }
const OWN =
  '{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11,"prompt_tokens_details":{"cached_tokens":4},"x":1.0}'
const told: Usage = {
  ...COUNTS,
  told: { ...COUNTS, isAlone: true, source: { json: `{"usage":${OWN}}`, keepsModel: true } },
}
const PRICE = ',"spillway":{"price_usd":"0.00126"}}'
const priced = { ...told, priceUsd: '0.00126' }

describe('a usage with its price', () => {
  it('is the engine’s own text with the price behind', () => {
    expect([usageText(told), isAsTold(told)]).toEqual([OWN, true])
    expect([usageText(priced), isAsTold(priced)]).toEqual([OWN.slice(0, -1) + PRICE, false])
    expect(usageText({ ...priced, outputTokens: 3 })).toContain('"completion_tokens":3')
    expect(usageText({ ...COUNTS, priceUsd: '0.00126' }).endsWith(PRICE)).toBe(true)
  })

  it('is so in the words of Responses and Messages', () => {
    const response = '{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":2,"x":1.0}'
    expect(responsesUsageText(response, COUNTS)).toBeUndefined()
    expect(responsesUsageText(response, priced)).toBe(response.slice(0, -1) + PRICE)
    const message = '{"input_tokens":5,"cache_read_input_tokens":4,"output_tokens":2,"x":1.0}'
    expect(messagesUsageText(message, undefined, COUNTS)).toBeUndefined()
    expect(messagesUsageText(message, undefined, priced)).toBe(message.slice(0, -1) + PRICE)
    expect(messagesUsageText(message, undefined, { ...priced, outputTokens: 3 })).toContain('"output_tokens":3')
  })
})
