import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readGuardVerdict } from './guard-verdict.ts'

const unsafe = (...categories: string[]) => ({ kind: 'unsafe', categories })
const UNREADABLE = { kind: 'unreadable' }

describe('an answer of a chat model', () => {
  it.each([
    ['safe', { kind: 'safe' }],
    ['\n\nSafe.\n', { kind: 'safe' }],
    ['unsafe', unsafe('unsafe')],
    ['unsafe\nS1', unsafe('s1')],
    ['unsafe\nS1,S9', unsafe('s1', 's9')],
    ['Unsafe\nViolent Crimes, S9', unsafe('violent-crimes', 's9')],
    ['{"safe": true}', { kind: 'safe' }],
    ['{"safe": false, "categories": ["S1"]}', unsafe('s1')],
    ['{"flagged": true, "categories": {"hate": true, "violence": false}}', unsafe('hate')],
    ['{"unsafe": false}', { kind: 'safe' }],
  ])('%j is a verdict', (answer, verdict) => expect(readGuardVerdict('chat', answer)).toEqual(verdict))

  it.each([
    '',
    'The message is safe.',
    'safe and sound',
    'safe\nS1',
    'safe\nunsafe',
    'unsafe\nS1\nbut only a little',
    'not unsafe',
    'unsafe because the user says: my card is 4111 1111 1111 1111',
    '{"safe": "yes"}',
    '{"safe": true, "flagged": true}',
    '{"categories": ["S1"]}',
    '{"safe": true',
    '[{"safe": true}]',
    'null',
  ])('%j is none', (answer) => expect(readGuardVerdict('chat', answer)).toEqual(UNREADABLE))

  it('never passes on words that are no names', () => {
    const answer = JSON.stringify({ safe: false, categories: ['S1', 'my secret is hunter2!', 'x'.repeat(100)] })
    expect(readGuardVerdict('chat', answer)).toEqual(unsafe('s1'))
    fc.assert(
      fc.property(fc.string(), (text) => {
        const verdict = readGuardVerdict('chat', text)
        if (verdict.kind === 'unsafe')
          for (const category of verdict.categories) expect(category).toMatch(/^[a-z][a-z0-9/_-]{0,39}$/)
      }),
    )
  })
})

describe('an answer of a moderations endpoint', () => {
  const results = (...all: unknown[]): string => JSON.stringify({ id: 'm', model: 'x', results: all })

  it.each([
    [results({ flagged: false, categories: { hate: false } }), { kind: 'safe' }],
    [
      results({ flagged: false }, { flagged: true, categories: { 'hate/threatening': true, sexual: false } }),
      unsafe('hate/threatening'),
    ],
    [results(), UNREADABLE],
    [results({ flagged: false }, { flagged: 'no' }), UNREADABLE],
    ['safe', UNREADABLE],
    ['{"safe": true}', UNREADABLE],
  ])('%s', (answer, verdict) => expect(readGuardVerdict('moderations', answer)).toEqual(verdict))
})
