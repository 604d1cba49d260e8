import { describe, expect, it } from 'vitest'
import { HARM_KINDS, type HarmFindings } from '../domain/harm.ts'
import { checkModeration, MODERATION_INPUTS_MAX, moderatedInputs, moderationResult } from './moderations.ts'

const CATEGORIES = [
  'harassment',
  'harassment/threatening',
  'hate',
  'hate/threatening',
  'illicit',
  'illicit/violent',
  'self-harm',
  'self-harm/instructions',
  'self-harm/intent',
  'sexual',
  'sexual/minors',
  'violence',
  'violence/graphic',
]

function findings(score: number, found: string | undefined): HarmFindings {
  return Object.fromEntries(
    HARM_KINDS.map((kind) => [kind, { score, isFound: kind === found }]),
  ) as unknown as HarmFindings
}

interface Result {
  readonly flagged: boolean
  readonly categories: Record<string, boolean>
  readonly category_scores: Record<string, number>
  readonly category_applied_input_types: Record<string, string[]>
}

describe('the body', () => {
  it.each([
    ['a text', { input: 'a' }, [['a']]],
    ['texts', { input: ['a', ''] }, [['a'], ['']]],
    [
      'parts, which are one input',
      {
        input: [
          { type: 'text', text: 'a' },
          { type: 'image_url', image_url: { url: 'x' } },
          { type: 'text', text: 'b' },
        ],
      },
      [['a', 'b']],
    ],
    ['a picture alone', { input: [{ type: 'image_url', image_url: { url: 'x' } }] }, [[]]],
    ['OpenAI’s name of a model', { input: 'a', model: 'omni-moderation-latest' }, [['a']]],
    ['no model', { input: 'a', model: null }, [['a']]],
  ])('is %s', (_, body, inputs) => {
    const checked = checkModeration(body)
    expect(checked.kind).toBe('ok')
    if (checked.kind === 'ok') expect(moderatedInputs(checked.value)).toEqual(inputs)
  })

  it.each([
    [{}, 'input'],
    [{ input: 1 }, 'input'],
    [{ input: [] }, 'input'],
    [{ input: ['a', { type: 'text', text: 'b' }] }, 'input'],
    [{ input: Array.from({ length: MODERATION_INPUTS_MAX + 1 }, () => 'a') }, 'input'],
    [{ input: 'a', model: 'gpt-7' }, 'model'],
  ])('is refused when it is %j', (body, param) => {
    const checked = checkModeration(body)
    expect(checked.kind === 'fault' && checked.fault.param).toMatch(new RegExp(`^${param}`))
  })
})

describe('a result', () => {
  it('has the thirteen categories, and no input types where nothing was applied', () => {
    const result = moderationResult([findings(0.4, 'hate'), findings(0.9, undefined)]) as Result
    for (const part of [result.categories, result.category_scores, result.category_applied_input_types]) {
      expect(Object.keys(part).sort()).toEqual(CATEGORIES)
    }
    expect(result.flagged).toBe(true)
    expect(Object.entries(result.categories).filter(([, isFound]) => isFound)).toEqual([['hate', true]])
    expect(result.category_scores).toMatchObject({ hate: 0.9, violence: 0.9, illicit: 0, 'sexual/minors': 0 })
    expect(result.category_applied_input_types).toMatchObject({ hate: ['text'], illicit: [], 'hate/threatening': [] })
  })

  it('of an input without text has nothing applied', () => {
    const result = moderationResult([]) as Result
    expect(result.flagged).toBe(false)
    expect(Object.values(result.category_applied_input_types)).toEqual(CATEGORIES.map(() => []))
    expect(Object.values(result.category_scores)).toEqual(CATEGORIES.map(() => 0))
  })
})
