import { expect, it } from 'vitest'
import { tellPairs, type WireOutputPair } from './rollout-outputs.ts'

const output = (text: string, finish_reason = 'stop') => ({ release: 'm@1', text, length: text.length, finish_reason })
const pair = (over: Partial<WireOutputPair> = {}): WireOutputPair => ({
  request: 'req_1',
  at: '2026-11-01T12:00:00.000Z',
  tenant: 'acme',
  model: 'm',
  primary: output('A weir is a dam.'),
  shadow: { ...output('A weir is \u001b[31mlow.\nYes', 'length'), release: 'm@2', outcome: 'completed' },
  difference: { equal: false, first_difference_at: 10, same_words_ratio: 0.5, json: { primary: true, shadow: false } },
  ...over,
})

it('a pair is a row with its difference, and the two texts without control characters', () => {
  const [heading, row, client, shadow] = tellPairs([pair()]).split('\n')
  expect(heading).toMatch(/^WHEN +REQUEST +TENANT +SHADOW +SAME +WORDS +LENGTH +FINISH +JSON +DIFFERS AT$/)
  expect(row).toMatch(/req_1 +acme +m@2 completed +no +50 % +16 → 23 +stop → length +valid → broken +10$/)
  expect([client, shadow]).toEqual(['  client  A weir is a dam.', '  shadow  A weir is low. Yes'])
})

it('a shadow that failed has no text and no difference', () => {
  const { difference: _, ...rest } = pair({ shadow: { ...output(''), release: 'm@2', outcome: 'failed' } })
  const lines = tellPairs([rest]).split('\n')
  expect(lines[1]).toMatch(/m@2 failed +– +– +16 → 0 +stop +– +–$/)
  expect(lines).toHaveLength(3)
})

it('a difference that is not in the kept texts is named as such, and no pairs say how to get some', () => {
  const difference = { equal: false, first_difference_at: null, same_words_ratio: 1 }
  expect(tellPairs([pair({ difference })])).toContain('not in what is kept')
  expect(tellPairs([])).toContain('storing: { shadows: true }')
})
