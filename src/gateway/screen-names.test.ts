import { describe, expect, it } from 'vitest'
import { PlainFinder } from '../../test/support/plain-finder.ts'
import type { ScreeningConfig } from '../config/schema.ts'
import { toScreening } from '../config/to-screening.ts'
import type { EntitySpan, NameFinder, ScreeningTerms } from '../domain/screening.ts'
import { NAME_WINDOW_LENGTH, namesBeside } from './name-spans.ts'
import { screenBody } from './screen-body.ts'

const EMAIL = 'ada@canary.example'

/** Every "Ada" with the word behind it is a name. */
const find = (text: string): EntitySpan[] =>
  [...text.matchAll(/Ada \w+/g)].map(({ 0: name, index }) => ({
    screen: 'names',
    category: 'person',
    start: index,
    end: index + name.length,
  }))

async function screened(names: NameFinder | undefined, content: string, settings: ScreeningConfig) {
  const terms = toScreening(settings) as ScreeningTerms
  const screens = { finderOf: () => new PlainFinder(), names, isModel: () => true, salt: 's' }
  const bytes = Buffer.from(JSON.stringify({ messages: [{ role: 'user', content }] }))
  const done = await screenBody(screens, { dialect: 'chat', tenantId: 'shop', terms }, bytes)
  if (done.kind === 'fault') throw new Error(done.fault.message)
  const body = JSON.parse(done.bytes.toString()) as { messages: [{ content: string }] }
  return { content: body.messages[0].content, found: done.found }
}

describe('the screen of names', () => {
  it('asks the thread for the tenant, beside the other rules', async () => {
    const asked: string[] = []
    const names: NameFinder = {
      find: () => {
        throw new Error('looked at on the spot')
      },
      ask: async (tenantId, text) => {
        asked.push(`${tenantId}: ${text}`)
        return find(text)
      },
    }
    const text = `I am Ada Lovelace, ${EMAIL}`
    const { content, found } = await screened(names, text, { pii: 'redact', names: 'redact' })
    expect(content).toBe('I am <PERSON>, <EMAIL>')
    expect(found.found).toMatchObject([
      { screen: 'names', category: 'person', action: 'redact', count: 1 },
      { screen: 'pii', category: 'email', count: 1 },
    ])
    expect(asked).toContain(`shop: ${text}`)
  })

  it('looks at a text on the spot, in pieces with pauses, where the thread does not answer', async () => {
    const lengths: number[] = []
    const names: NameFinder = {
      find: (text) => {
        lengths.push(text.length)
        return find(text)
      },
      ask: () => Promise.resolve(undefined),
    }
    const filler = 'and so it goes on '.repeat(2_000)
    const text = `Ada One ${filler} Ada Two ${filler} Ada Three`
    const { content, found } = await screened(names, text, { names: 'redact' })
    expect(content).toBe(`<PERSON> ${filler} <PERSON> ${filler} <PERSON>`)
    expect(found.found).toMatchObject([{ count: 3 }])
    expect(Math.max(...lengths)).toBeLessThanOrEqual(NAME_WINDOW_LENGTH)
  })

  it('asks nobody for a tenant without it, and a short body is done at once', () => {
    const names: NameFinder = {
      find: () => {
        throw new Error('asked')
      },
      ask: () => {
        throw new Error('asked')
      },
    }
    const terms = toScreening({ pii: 'redact', output: { names: 'redact' } }) as ScreeningTerms
    const screens = { finderOf: () => new PlainFinder(), names, isModel: () => true, salt: 's' }
    const ask = { dialect: 'chat', tenantId: 'shop', terms } as const
    expect(screenBody(screens, ask, Buffer.from('{"prompt":"Ada Lovelace"}'))).toMatchObject({ kind: 'ok' })
  })

  it('counts without a change where the policy observes, and leaves allowed values alone', async () => {
    const text = 'Ada Lovelace met Ada Yonath'
    expect(await screened({ find }, text, { names: 'observe' })).toMatchObject({
      content: text,
      found: { found: [{ action: 'observe', count: 2 }] },
    })
    const { content } = await screened({ find }, text, { names: 'redact', allowed: ['Ada Yonath'] })
    expect(content).toBe('<PERSON> met Ada Yonath')
  })

  it('keeps arguments of tools JSON', async () => {
    const { content } = await screened({ find }, '{"who":"Ada Lovelace","n":1}', { names: 'redact' })
    expect(JSON.parse(content)).toEqual({ who: expect.stringContaining('<PERSON'), n: 1 })
  })

  it('gives way to what rules found, and keeps words beside it', () => {
    const text = 'Ada 4111 Lovelace ,'
    const name = { screen: 'names', category: 'person', start: 0, end: 19 } as const
    const card = { screen: 'pii', category: 'card', start: 4, end: 8 } as const
    const tail = { screen: 'pii', category: 'ip', start: 9, end: 17 } as const
    expect(namesBeside(text, [card, tail], [name], { allowed: [] })).toEqual([{ ...name, end: 4 }, card, tail])
    expect(namesBeside(text, [], [name], { allowed: [] })).toEqual([name])
    expect(namesBeside(text, [{ ...card, start: 0, end: 19 }], [name], { allowed: [] })).toHaveLength(1)
  })
})
