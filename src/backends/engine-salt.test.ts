import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { answers, type Behaviour, FakeUpstream, fails } from '../../test/support/fake-upstream.ts'
import { callOpenAi } from '../../test/support/openai-call.ts'
import { ACME } from '../../test/support/requests.ts'
import type { NativeText, Request } from '../domain/request.ts'
import { EngineSalt, type EngineSaltOptions } from './engine-salt.ts'

/** What an engine is told of whose prompts may meet in its cache. Salts are written as what they are made of. */
const saltOf = (scope: string): string => `<${scope}>`
const VLLM_PAGE = 'vllm:num_requests_running{engine="0"} 3\n'

let upstream: FakeUpstream
beforeEach(async () => {
  upstream = await FakeUpstream.start()
})
afterEach(() => upstream.close())

interface Asked {
  readonly salt: EngineSalt | undefined
  readonly body?: object
  readonly over?: Partial<Request>
  readonly behaviour?: Behaviour
}

const engine = (over: Partial<EngineSaltOptions> = {}): EngineSalt => new EngineSalt({ saltOf, ...over })

/** The salts that reached the engine by this request, one for each try. */
async function salts({ salt, body = {}, over = {}, behaviour = answers() }: Asked): Promise<unknown[]> {
  const before = upstream.seen.length
  const own = (body as { cache_salt?: unknown }).cache_salt
  const cacheSalt = typeof own === 'string' ? own : ''
  upstream.behaviour = behaviour
  await callOpenAi(upstream, behaviour, salt === undefined ? {} : { salt }, { cacheSalt, ...over }, body)
  return upstream.seen.slice(before).map((call) => call.body['cache_salt'])
}

describe('which engines are told a salt', () => {
  it.each([
    ['vLLM', VLLM_PAGE, ['<tenant acme>']],
    ['SGLang', 'sglang:num_running_reqs 1\n', ['<tenant acme>']],
    ['llama.cpp', 'llamacpp:requests_processing 1\n', [undefined]],
    ['a page that names vLLM elsewhere', '# vllm:\nx{engine="vllm:"} 1\n', [undefined]],
  ])('by its metrics: %s', async (_, page, told) => {
    const salt = engine()
    salt.readPage(page)
    expect(await salts({ salt })).toEqual(told)
  })

  it('one that was known once, whatever its next page says', async () => {
    const salt = engine()
    salt.readPage(VLLM_PAGE)
    salt.readPage('')
    expect(await salts({ salt })).toEqual(['<tenant acme>'])
  })

  it.each([
    ['that the configuration names', { isKnown: true }, ['<tenant acme>']],
    ['where all are', { wish: 'always' }, ['<tenant acme>']],
    ['where none is', { wish: 'never', isKnown: true }, [undefined]],
    ['unknown ones', {}, [undefined]],
  ] as const)('engines %s', async (_, options, told) => {
    expect(await salts({ salt: engine(options) })).toEqual(told)
  })
})

describe('whose salt', () => {
  it('that of the org, or none where the tenant shares with all', async () => {
    const salt = engine({ isKnown: true })
    expect(await salts({ salt, over: { tenant: { ...ACME, orgId: 'group', prefixCache: 'org' } } })).toEqual([
      '<org group>',
    ])
    expect(await salts({ salt, over: { tenant: { ...ACME, prefixCache: 'shared' } } })).toEqual([undefined])
  })

  it.each([
    ['an engine that is told salts', { isKnown: true }],
    ['an engine that is told none', { wish: 'never' }],
    ['an unknown engine', {}],
  ] as const)('never that of the client alone, at %s', async (_, options) => {
    const body = { cache_salt: '<tenant globex>' }
    expect(await salts({ salt: engine(options), body })).toEqual(['<tenant acme\u0000<tenant globex>>'])
  })

  it('no salt of a client that is none', async () => {
    expect(await salts({ salt: engine(), body: { cache_salt: ['<tenant globex>'] } })).toEqual([undefined])
    expect(await salts({ salt: engine({ isKnown: true }), body: { cache_salt: 7 } })).toEqual(['<tenant acme>'])
  })

  it('what the client sent, to a gateway of another region: it salts for itself', async () => {
    expect(await salts({ salt: undefined, body: { cache_salt: 'mine' } })).toEqual(['mine'])
  })

  it('the same in the words of other dialects and for vectors', async () => {
    const salt = engine({ isKnown: true })
    const raw = '{"model":"m","input":"Hello?","cache_salt":"<tenant globex>"}'
    const native: NativeText = { dialect: 'responses', raw }
    upstream.behaviour = answers()
    const text = { body: { model: 'm', messages: [] }, native }
    const over = { text, segments: [{ role: 'user' as const, tokens: 1 }] }
    await callOpenAi(upstream, answers(), { salt, dialects: ['responses'] }, over)
    expect(upstream.seen.at(-1)).toMatchObject({ path: '/v1/responses', body: { cache_salt: '<tenant acme>' } })
    const vectors = { kind: 'embedding', isStreamed: false } as const
    await salts({ salt, body: { input: 'a' }, over: vectors })
    expect(upstream.seen.at(-1)).toMatchObject({ path: '/v1/embeddings', body: { cache_salt: '<tenant acme>' } })
  })
})

describe('an engine that refuses salts', () => {
  const words = { message: "Parameter 'cache_salt' is not supported with this instance of vLLM, which uses engine V0." }
  const strict: Behaviour = (call) => ('cache_salt' in call.body ? fails(400, { error: words })(call) : answers()(call))

  it('is asked without, once and for all', async () => {
    const salt = engine({ isKnown: true })
    expect(await salts({ salt, behaviour: strict })).toEqual(['<tenant acme>', undefined])
    expect(await salts({ salt, behaviour: strict })).toEqual([undefined])
  })

  it('keeps its word where a salt must be', async () => {
    const salt = engine({ wish: 'always' })
    expect(await salts({ salt, behaviour: strict })).toEqual(['<tenant acme>'])
  })

  it('refuses the salt that a client asked for', async () => {
    const salt = engine({ isKnown: true })
    expect(await salts({ salt, behaviour: strict, body: { cache_salt: 'x' } })).toEqual(['<tenant acme\u0000x>'])
  })

  it('is not asked without for a fault of the request, nor after it took one', async () => {
    const salt = engine({ isKnown: true })
    const faulty = fails(400, { error: { message: 'temperature must be at most 2' } })
    expect(await salts({ salt, behaviour: faulty })).toEqual(['<tenant acme>'])
    await salts({ salt })
    expect(await salts({ salt, behaviour: strict })).toEqual(['<tenant acme>'])
  })
})
