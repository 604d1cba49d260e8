import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutAt } from '../../test/support/cuts.ts'
import { outputRule, screeningOf } from '../../test/support/fake-screens.ts'
import { AnswerScreens } from './answer-screen.ts'
import { embeddedAnswers } from './embedded-answers.ts'

/** The whole chain with the rules that a server has. */
const screens = new AnswerScreens(
  embeddedAnswers({ get: () => ({ scoreMin: 0.5, score: (text) => (text.includes('darn') ? 0.9 : 0) }) }),
)
const rules = [
  outputRule(),
  outputRule({ screen: 'secrets' }),
  outputRule({ screen: 'toxicity', action: 'flag' }),
  outputRule({ screen: 'guard', action: 'flag' }),
]
const VALUES = { '<EMAIL_3f9c02ab71de>': 'me@home.example' }

function through(pieces: readonly string[]) {
  const screen = screens.of(screeningOf({ rules }, VALUES))!
  let client = ''
  let kept = ''
  const take = (delta: ReturnType<typeof screen.flush>) => {
    for (const { content } of delta?.choices ?? []) client += content ?? ''
    for (const { content } of delta?.kept ?? []) kept += content ?? ''
  }
  for (const content of pieces) take(screen.write({ tokens: 1, choices: [{ index: 0, content, finishReason: null }] }))
  take(screen.flush())
  const findings = screen.findings.map(({ screen: name, category, count }) => `${name} ${category} ${count}`)
  return { client, kept, findings: findings.sort() }
}

const VALUE = ['jane.doe@example.com', '4111 1111 1111 1111', 'DE89 3704 0044 0532 0130 00', '192.168.10.24'] as const

describe('answers under the rules of a server', () => {
  it('have none of these values, whatever the cut, and give the client its own back', () => {
    const word = fc.constantFrom(...VALUE, '<EMAIL_3f9c02ab71de>', 'you darn fool.', 'The weir', 'of 1833,', 'x@', '\n')
    fc.assert(
      fc.property(fc.array(word, { maxLength: 12 }), fc.array(fc.nat(300), { maxLength: 60 }), (words, cuts) => {
        const text = words.join(' ')
        const whole = through([text])
        expect(through(cutAt(text, cuts))).toEqual(whole)
        for (const value of VALUE) expect(whole.client).not.toContain(value)
        expect(whole.kept).not.toContain('me@home')
        expect(whole.client.includes('me@home.example')).toBe(words.includes('<EMAIL_3f9c02ab71de>'))
      }),
      { numRuns: 150 },
    )
  })

  it('name the screens that cannot read an answer', () => {
    const unread = [outputRule({ screen: 'names' }), outputRule({ screen: 'guard', action: 'block' })]
    expect(screens.of(screeningOf({ rules: unread }))?.skipped).toEqual(['names', 'guard'])
    expect(screens.of(screeningOf({ rules }))?.skipped).toEqual(['guard'])
    expect(screens.of(screeningOf())?.skipped).toEqual([])
  })

  it('say what was found, by screen', () => {
    const { findings, client } = through([`To ${VALUE[0]}, with ${VALUE[1]}. You darn fool. Bye.`])
    expect(client).toBe('To <EMAIL>, with <CARD>. You darn fool. Bye.')
    expect(findings).toEqual(['pii card 1', 'pii email 1', 'toxicity toxicity 1'])
  })
})
