import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { describe, expect, it } from 'vitest'
import { estimateMessageTokens, estimateTokens } from './estimate.ts'

/** None of these texts was used for fitting the weights. */
const TEXTS: Readonly<Record<string, string>> = {
  prose:
    'The harbour town woke slowly. Gulls argued over the fish crates while the ferry, late as always, sounded its horn ' +
    'twice and turned into the wind. Nobody on the quay looked up; they had seen it do so every morning for thirty years.',
  code:
    'export function clampRate(rate: number, { min, max }: Bounds): number {\n  if (Number.isNaN(rate)) return min\n' +
    '  // Keep it inside, whatever the caller thinks.\n  return Math.min(max, Math.max(min, rate))\n}\n\nconst x = items.map((i) => i.id)\n',
  json: '{"id":"ord_8812","items":[{"sku":"A-100","qty":2,"price":19.99},{"sku":"B-7","qty":1,"price":5}],"paid":true}',
  numbers: '2026-01-14 12:30:55, 1048576, 3.14159, 42, 99.5%, 10.0.0.1, +49 30 1234567, 0x7fff, 1,000,000',
  german:
    'Die Stadtverwaltung hat gestern beschlossen, die Straßenbahnlinie bis zum neuen Krankenhaus zu verlängern; die ' +
    'Bauarbeiten beginnen voraussichtlich im Frühjahr und dauern etwa zwei Jahre.',
  russian: 'Вчера вечером в городе прошёл сильный дождь, и несколько улиц оказались полностью затоплены водой.',
  chinese: '昨天晚上,城里下了一场大雨,好几条街道都被水淹没了。消防队员整夜都在帮助居民撤离。',
  japanese: '昨日の夜、町に大雨が降り、いくつかの通りが水浸しになりました。消防隊は一晩中、住民の避難を手伝いました。',
  korean: '어젯밤 도시에 큰 비가 내려 여러 거리가 물에 잠겼습니다. 소방대원들은 밤새 주민들의 대피를 도왔습니다.',
  arabic: 'هطلت أمطار غزيرة على المدينة مساء أمس وغمرت المياه عدة شوارع بالكامل.',
  emoji: 'Great work team! 🎉🎉 The launch went really well 🚀 and the customers love it ❤️ see you tomorrow 👋😄',
}

const errorOf = (text: string): number => {
  const exact = encode(text).length
  return (estimateTokens(text) - exact) / exact
}

describe('estimate', () => {
  it.each(Object.entries(TEXTS))('is within a quarter of the tokenizer for a few lines of %s', (_, text) => {
    expect(Math.abs(errorOf(text))).toBeLessThan(0.25)
  })

  it('is within a tenth over all of them together', () => {
    expect(Math.abs(errorOf(Object.values(TEXTS).join('\n\n')))).toBeLessThan(0.1)
  })

  it('samples long texts and stays as good', () => {
    const paragraphs: string[] = []
    for (let i = 0; i < 400; i++)
      paragraphs.push(Object.values(TEXTS)[(i * i + 3 * i) % 4] as string, String(i * 7_919))
    expect(Math.abs(errorOf(paragraphs.join('\n')))).toBeLessThan(0.1)
  })

  it('knows nothing as nothing, and whole numbers only', () => {
    expect(estimateTokens('')).toBe(0)
    expect(estimateTokens('a')).toBe(1)
    expect(Number.isInteger(estimateTokens('ab cd'.repeat(10_000)))).toBe(true)
    expect(estimateMessageTokens('')).toBeGreaterThan(0)
  })
})
