import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PlainFinder } from '../../test/support/plain-finder.ts'
import type { ScreeningConfig } from '../config/schema.ts'
import { toScreening } from '../config/to-screening.ts'
import type { ScreeningTerms } from '../domain/screening.ts'
import type { ScreenedDialect } from '../wire/screening-exceptions.ts'
import { Placeholders } from './placeholders.ts'
import { blockFault, type FoundInBody, screenBody, screeningOf } from './screen-body.ts'
import { drained, TextScreen } from './screen-text.ts'

const EMAIL = 'ada@canary.example'
const CARD = '4111111111111111'
const KEY = 'sk_live_0123456789abcdef'
const REDACT = { pii: 'redact', secrets: 'redact' } as const

const termsOf = (settings: ScreeningConfig): ScreeningTerms => toScreening(settings) as ScreeningTerms

interface Options {
  readonly settings?: ScreeningConfig
  readonly dialect?: ScreenedDialect
  readonly session?: string
  readonly tenant?: string
  readonly finder?: PlainFinder
}

async function screen(json: string, options: Options = {}) {
  const { settings = REDACT, dialect = 'chat', session, tenant = 'shop', finder = new PlainFinder() } = options
  const terms = termsOf(settings)
  const screens = { finderOf: () => finder, isModel: (name: string) => name === 'sim' || name === EMAIL, salt: 'salt' }
  return screenBody(screens, { dialect, tenantId: tenant, terms, session }, Buffer.from(json))
}

async function rewrite(body: unknown, options: Options = {}): Promise<{ body: never; found: FoundInBody }> {
  const screened = await screen(JSON.stringify(body), options)
  if (screened.kind === 'fault') throw new Error(screened.fault.message)
  return { body: JSON.parse(screened.bytes.toString()) as never, found: screened.found }
}

async function faultOf(body: unknown, options: Options = {}) {
  const screened = await screen(JSON.stringify(body), options)
  if (screened.kind === 'ok') throw new Error('no fault')
  return screened.fault
}

describe('a body of a tenant with screens', () => {
  it('keeps its very bytes where nothing is found', async () => {
    const bytes = Buffer.from('{ "model":"sim",  "n":1.0, "messages":[{"role":"user","content":"hello \\u00e9"}] }')
    const screens = { finderOf: () => new PlainFinder(), isModel: () => true, salt: 's' }
    const ask = { dialect: 'chat', tenantId: 'a', terms: termsOf(REDACT) } as const
    const screened = screenBody(screens, ask, bytes)
    expect(screened).toMatchObject({ kind: 'ok', found: { found: [], unscreened: [] } })
    expect((screened as { bytes: Buffer }).bytes).toBe(bytes)
  })

  it('is rewritten at every place, and every other character stays', async () => {
    const json = `{ "temperature": 1.0, "messages":[{"role":"user","content":"I am ${EMAIL}, \\"${CARD}\\" \\u00e9"}] }`
    const screened = await screen(json)
    expect((screened as { bytes: Buffer }).bytes.toString()).toBe(
      '{ "temperature": 1.0, "messages":[{"role":"user","content":"I am <EMAIL>, \\"<CARD>\\" é"}] }',
    )
  })

  it.each<readonly [ScreenedDialect, object]>([
    ['chat', { messages: [{ role: 'user', content: EMAIL, name: EMAIL }] }],
    ['chat', { messages: [{ role: EMAIL, content: [{ type: EMAIL, text: EMAIL }] }] }],
    ['chat', { messages: [{ role: 'tool', tool_call_id: EMAIL, content: EMAIL }] }],
    [
      'chat',
      { tools: [{ type: 'function', function: { name: EMAIL, description: EMAIL, parameters: { enum: [EMAIL] } } }] },
    ],
    ['chat', { tools: [{ function: { parameters: { properties: { [EMAIL]: { type: 'string' } } } } }] }],
    ['chat', { response_format: { type: 'json_schema', json_schema: { name: EMAIL, schema: { title: EMAIL } } } }],
    ['chat', { stop: [EMAIL], metadata: { [EMAIL]: EMAIL }, user: EMAIL, unknown: { deep: [[EMAIL]] } }],
    ['chat', { spillway: { retrieval: { corpus: EMAIL } } }],
    ['chat', { messages: [{ content: [{ type: 'image_url', image_url: { url: `https://x.example/${EMAIL}` } }] }] }],
    ['chat', { messages: [{ content: [{ type: 'input_audio', input_audio: { data: EMAIL, format: EMAIL } }] }] }],
    ['completion', { prompt: [EMAIL, `a ${EMAIL}`], suffix: EMAIL }],
    [
      'responses',
      { input: [{ type: 'function_call', call_id: EMAIL, name: EMAIL, arguments: EMAIL }], instructions: EMAIL },
    ],
    ['responses', { input: EMAIL, previous_response_id: EMAIL, text: { format: { name: EMAIL } } }],
    [
      'messages',
      { system: [{ type: 'text', text: EMAIL }], messages: [{ content: [{ type: 'tool_use', input: { a: EMAIL } }] }] },
    ],
    [
      'messages',
      { metadata: { user_id: EMAIL }, messages: [{ content: [{ type: 'document', source: { data: EMAIL } }] }] },
    ],
    ['embeddings', { input: [EMAIL], user: EMAIL }],
    ['tensors', { id: EMAIL, inputs: [{ name: EMAIL, datatype: 'BYTES', data: [[EMAIL]], parameters: { a: EMAIL } }] }],
    ['transit', { query: EMAIL, documents: [EMAIL, { text: EMAIL }] }],
    ['infer', { tenant_id: EMAIL }],
    ['search', { query: EMAIL, ranking_options: { ranker: EMAIL } }],
  ])('%s: no string of %j keeps a value', async (dialect, body) => {
    const { body: rewritten, found } = await rewrite(body, { dialect })
    expect(JSON.stringify(rewritten)).not.toContain('canary')
    expect(JSON.stringify(rewritten)).toContain('<EMAIL')
    expect(found.found).toMatchObject([{ screen: 'pii', direction: 'input', category: 'email', action: 'redact' }])
  })

  it('has no value left in any string of any JSON but for the closed exceptions', async () => {
    const json = fc.jsonValue({ maxDepth: 4 })
    await fc.assert(
      fc.asyncProperty(json, fc.nat(), async (value, at) => {
        const marked = withCanary(value, at)
        const { body } = await rewrite(marked)
        expect(JSON.stringify(body)).not.toContain('canary')
      }),
    )
  })

  it('loses values that a second member of the same name hides, and those of a wrong model name', async () => {
    const screened = await screen(`{"model":"${CARD}","model":"sim","content":"${KEY}","content":"x"}`)
    expect((screened as { bytes: Buffer }).bytes.toString()).toBe(
      '{"model":"<CARD>","model":"sim","content":"<API_KEY>","content":"x"}',
    )
  })

  it('keeps what the closed list excepts: known models, words, ids of ours', async () => {
    const id = `call_${'0123456789abcdef'.repeat(2)}`
    const body = { model: EMAIL, messages: [{ role: 'tool', tool_call_id: id, content: 'x' }] }
    expect((await rewrite(body)).body).toEqual(body)
  })

  it('keeps the filters of a search, which are compared with attributes as they were uploaded', async () => {
    const filters = { type: 'eq', key: 'owner', value: EMAIL }
    expect((await rewrite({ query: EMAIL, filters }, { dialect: 'search' })).body).toEqual({
      query: '<EMAIL>',
      filters,
    })
    expect((await rewrite({ query: '', filters })).body).not.toEqual({ query: '', filters })
  })

  it('keeps JSON in strings JSON: escapes are seen through, numbers become strings, neighbours count', async () => {
    const inner = `{"to":"ada\\u0040canary.example","card":${CARD},"n":1.50,"deep":${JSON.stringify(`{"k":"${KEY}"}`)}}`
    const call = { function: { name: 'send', arguments: inner } }
    const { body } = await rewrite({ messages: [{ role: 'assistant', tool_calls: [call] }] })
    const { messages } = body as { messages: Array<{ tool_calls: (typeof call)[] }> }
    const rewritten = messages[0]?.tool_calls[0]?.function.arguments ?? ''
    expect(rewritten).toBe('{"to":"<EMAIL>","card":"<CARD>","n":1.50,"deep":"{\\"k\\":\\"<API_KEY>\\"}"}')
    const beside = await rewrite({ arguments: '{"api_key":"hunter2hunter2","x":1}' })
    expect(beside.body).toEqual({ arguments: '{"api_key":"<GENERIC>","x":1}' })
  })

  it('refuses token ids', async () => {
    expect(await faultOf({ prompt: [1, 2, 3] }, { dialect: 'completion' })).toMatchObject({
      code: 'unsupported-parameter',
      param: 'prompt',
    })
    expect(await faultOf({ input: [[1, 2]] }, { dialect: 'embeddings' })).toMatchObject({ param: 'input' })
    expect((await rewrite({ logit_bias: { 5: 1 }, stop_token_ids: [1, 2] })).found.unscreened).toEqual([])
  })

  it('marks what is not text, or refuses it', async () => {
    const url = `data:image/png;base64,${'iVBORw0KGgo'.repeat(40)}`
    const body = {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image_url', image_url: { url } },
            { type: 'input_audio', input_audio: {} },
          ],
        },
      ],
    }
    const { body: same, found } = await rewrite(body)
    expect(same).toEqual(body)
    expect(found.unscreened).toEqual(['image', 'audio'])
    const fault = await faultOf(body, { settings: { ...REDACT, binary: 'refuse' } })
    expect(fault).toMatchObject({ code: 'content-filter', message: expect.stringContaining('image, audio') })
    expect((await rewrite({ tools: [{ parameters: { type: 'image' } }] })).found.unscreened).toEqual([])
  })

  it('is rewritten also where it is blocked, and says so with the category and never the text', async () => {
    const { body, found } = await rewrite({ content: `my key ${KEY}` }, { settings: { secrets: 'block' } })
    expect(body).toEqual({ content: 'my key <API_KEY>' })
    expect(found.found).toMatchObject([{ screen: 'secrets', category: 'api-key', action: 'block' }])
    const fault = blockFault(found.found)
    expect(fault).toMatchObject({ code: 'content-filter', param: null })
    expect(fault?.message).toContain('secrets found api-key')
    expect(fault?.message).not.toContain(KEY)
  })

  it('counts what it leaves: observe and flag replace nothing, off finds nothing', async () => {
    const body = { messages: [{ content: `${EMAIL} ${EMAIL} ${KEY}` }] }
    const flagged = await rewrite(body, { settings: { pii: 'flag', output: { secrets: 'redact' } } })
    expect(flagged.body).toEqual(body)
    expect(flagged.found.found).toEqual([
      { screen: 'pii', direction: 'input', category: 'email', action: 'flag', count: 2 },
    ])
  })
})

/** A value with a canary in one of its strings or names. */
function withCanary(value: unknown, at: number): unknown {
  const strings = JSON.stringify(value).match(/"(?:[^"\\]|\\.)*"/g)?.length ?? 0
  if (strings === 0) return { value, text: EMAIL }
  let nth = 0
  const put = (text: string): string => (nth++ === at % strings ? `${text} ${EMAIL} ${text}` : text)
  const walk = (one: unknown): unknown => {
    if (typeof one === 'string') return put(one)
    if (Array.isArray(one)) return one.map(walk)
    if (typeof one !== 'object' || one === null) return one
    return Object.fromEntries(Object.entries(one).map(([name, child]) => [put(name), walk(child)]))
  }
  return walk(value)
}

describe('pseudonyms', () => {
  const SETTINGS = { ...REDACT, reversible: true } as const

  it('are the same for a value within a conversation, and another in the next or for another tenant', async () => {
    const text = async (options: Options) => {
      const { body } = await rewrite({ content: `${EMAIL} and ${EMAIL}` }, { settings: SETTINGS, ...options })
      const [first, second] = (body as { content: string }).content.split(' and ')
      expect(first).toMatch(/^<EMAIL_[0-9a-f]{12}>$/)
      expect(second).toBe(first)
      return first
    }
    const one = await text({ session: 'a' })
    expect(await text({ session: 'a' })).toBe(one)
    expect(await text({ session: 'b' })).not.toBe(one)
    expect(await text({ session: 'a', tenant: 'other' })).not.toBe(one)
    expect(await text({})).not.toBe(one)
  })

  it('take the conversation from the body where no header names it', async () => {
    const of = async (more: object) =>
      ((await rewrite({ content: EMAIL, ...more }, { settings: SETTINGS })).body as { content: string }).content
    expect(await of({ user: 'u1' })).toBe(await of({ user: 'u1' }))
    expect(await of({ user: 'u1' })).not.toBe(await of({ user: 'u2' }))
  })

  it('give the values back, and only those that were made', async () => {
    const { body, found } = await rewrite({ content: `${EMAIL} ${CARD}` }, { settings: SETTINGS })
    const [email = '', card = ''] = (body as { content: string }).content.split(' ')
    const { restorer } = screeningOf(found, [])
    expect(restorer?.valueOf(email)).toBe(EMAIL)
    expect(restorer?.valueOf(card)).toBe(CARD)
    expect(restorer?.valueOf('<EMAIL_000000000000>')).toBeUndefined()
    expect(JSON.stringify(screeningOf(found, []))).not.toContain('canary')
  })

  it('of an earlier turn are left alone', async () => {
    const { body } = await rewrite({ content: EMAIL }, { settings: SETTINGS })
    const again = await rewrite(body, { settings: SETTINGS })
    expect(again.body).toEqual(body)
    expect(again.found.placeholders.size).toBe(0)
    expect(screeningOf(again.found, []).restorer).toBeUndefined()
  })

  it('stand for end users also where values are gone, so that two users stay two', async () => {
    const nameOf = async (user: string) => ((await rewrite({ user })).body as { user: string }).user
    expect(await nameOf(EMAIL)).toMatch(/^<EMAIL_[0-9a-f]{12}>$/)
    expect(await nameOf(EMAIL)).not.toBe(await nameOf(`b${EMAIL}`))
    expect(await nameOf(EMAIL)).toBe(await nameOf(EMAIL))
  })
})

describe('a long body', () => {
  const filler = 'some ordinary words that nobody looks for, '.repeat(6_000)

  it('is looked at in windows, and finds what stands anywhere, once', async () => {
    const finder = new PlainFinder()
    const at = [0, 10_000, 16_380, 16_384, 20_000, 32_760, 32_768, 65_530, 131_072, filler.length]
    let text = filler
    for (const place of at.toReversed()) text = `${text.slice(0, place)} ${EMAIL} ${text.slice(place)}`
    const { body, found } = await rewrite({ content: text }, { finder })
    expect(JSON.stringify(body)).not.toContain('canary')
    expect(found.found).toMatchObject([{ count: at.length }])
    expect(Math.max(...finder.asked)).toBeLessThanOrEqual(16_384)
  })

  it('finds the same in windows as at once, wherever a finding is cut', () => {
    const value = fc.constantFrom(EMAIL, CARD, KEY, `sk_live_${'k'.repeat(6_000)}`, `sk_live_${'k'.repeat(20_000)}`)
    const piece = fc.record({ before: fc.integer({ min: 1, max: 9_000 }), value })
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 8 }), (pieces) => {
        const text = pieces.map((one) => `${'some '.repeat(one.before / 5)} ${one.value} `).join('')
        const finder = new PlainFinder()
        const terms = termsOf(REDACT)
        const placeholders = new Placeholders({ isReversible: false, secret: '', tenantId: '', conversation: () => '' })
        const screen = new TextScreen({ terms, finder, placeholders })
        expect(drained(screen.spansIn(text))).toEqual(new PlainFinder().find(text))
      }),
      { numRuns: 30 },
    )
  })

  async function turnsOf(work: () => Promise<unknown>): Promise<number> {
    let turns = 0
    const count = (): void => {
      turns++
      timer = setImmediate(count)
    }
    let timer = setImmediate(count)
    await work()
    clearImmediate(timer)
    return turns
  }

  it('gives the event loop turns', async () => {
    const messages = Array.from({ length: 40 }, () => ({ content: filler.slice(0, 4_000) }))
    expect(await turnsOf(() => rewrite({ messages }))).toBeGreaterThanOrEqual(4)
  })

  it('gives turns while many values are replaced, because each pseudonym is an HMAC', async () => {
    const content = Array.from({ length: 4_000 }, (_, i) => `ada${i}@canary.example`).join(' ')
    const settings = { pii: 'redact', reversible: true } as const
    expect(await turnsOf(() => rewrite({ content }, { settings }))).toBeGreaterThanOrEqual(30)
  })

  it('compares values with pseudonyms of earlier turns in one walk: all pairs would take minutes', async () => {
    const content = `<EMAIL_3f9c02ab71de> ${EMAIL} `.repeat(40_000)
    const { body, found } = await rewrite({ content })
    expect((body as { content: string }).content).toBe('<EMAIL_3f9c02ab71de> <EMAIL> '.repeat(40_000))
    expect(found.found).toMatchObject([{ count: 40_000 }])
  })

  it('finds what stands around, before and behind a pseudonym, and not what stands inside', async () => {
    const inside = '<A_EMAIL_ab12cd34ef56>'
    const { body } = await rewrite({ content: `${EMAIL}${inside}${EMAIL} ${inside}` })
    expect((body as { content: string }).content).not.toContain('canary')
    expect((body as { content: string }).content).toMatch(/<A_EMAIL_ab12cd34ef56>$/)
  })
})
