import { encode } from 'gpt-tokenizer/encoding/o200k_base'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually, pause } from '../support/eventually.ts'
import { answers, type Behaviour, FakeUpstream } from '../support/fake-upstream.ts'
import {
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  testTree,
  upstreamTree,
} from '../support/start-platform.ts'

/** How long is a prompt, when nobody has counted it yet? What one tenant sends must not change the answer for another. */

const open: Array<{ close(): Promise<void> }> = []
afterEach(async () => {
  for (const one of open.splice(0).toReversed()) await one.close()
})

async function start(tree?: Tree) {
  const platform = await startPlatform(tree)
  open.push(platform)
  const chat = (content: string, key?: string, more: Tree = {}) =>
    postJson(
      `${platform.baseURL}/chat/completions`,
      { model: MODEL, messages: [{ role: 'user', content }], max_tokens: 1, ...more },
      authorization(key),
    )
  return { platform, chat }
}

async function startUpstream(behaviour: Behaviour, overrides: Tree = {}) {
  const upstream = await FakeUpstream.start(behaviour)
  open.push(upstream)
  return { upstream, ...(await start(upstreamTree([upstream.url], overrides))) }
}

/** Where an estimate that reads eight evenly spread stripes of a text of 8,000 characters would look. */
const STRIPES = Array.from({ length: 8 }, (_, i) => Math.floor(((8_000 - 173) * i) / 7))

/** Cheap where the stripes are, and several times as many tokens as it looks like everywhere else. */
function crafted(nth: number): string {
  const units = Array.from({ length: 8_000 }, (_, i) => 'qxzjkvwbpg'[(i * i * 7 + nth * i * 3) % 10] as string)
  for (const from of STRIPES) units.fill('e', Math.max(0, from - 2), from + 176)
  return units.join('')
}

describe('a tenant whose prompts are longer than they look', () => {
  it('makes nobody else’s prompt too long', { timeout: 60_000 }, async () => {
    const { chat } = await start()
    for (let i = 0; i < 120; i++) expect((await chat(crafted(i))).status).toBe(200)
    const honest = 'The weir spills what the river cannot hold. '.repeat(2_000)
    expect(encode(honest).length).toBeLessThan(21_000)
    const response = await chat(honest, GLOBEX_KEY)
    expect(await response.json()).not.toHaveProperty('error')
    expect(response.status).toBe(200)
  })
})

/** What the platform took the last prompt for. */
function promptTokensSeen(platform: TestPlatform): number | undefined {
  const arrived = platform.entries.findLast((entry) => entry.kind === 'arrived')
  return arrived?.kind === 'arrived' ? arrived.promptTokens : undefined
}

const WATER = 'The weir spills what the river cannot hold. '

describe('a prompt near the context window', () => {
  it('is counted to the token, off the event loop', { timeout: 60_000 }, async () => {
    const { platform, chat } = await start()
    const tools = [{ type: 'function', function: { name: 'weir', description: 'Tells the level of the water.' } }]
    // The first prompts may come before the tokenizer is loaded: then the engine decides.
    const counted = await eventually('a prompt is counted', async () => {
      const response = await chat(WATER.repeat(3_000), undefined, { tools })
      expect(response.status).toBe(200)
      const { usage } = (await response.json()) as { usage: { prompt_tokens: number } }
      return promptTokensSeen(platform) === usage.prompt_tokens && usage.prompt_tokens
    })
    expect(counted).toBeGreaterThan(27_000)
  })

  it('is refused when it is too long, whoever finds out', { timeout: 60_000 }, async () => {
    const { chat } = await start()
    for (let i = 0; i < 8; i++) {
      const response = await chat(WATER.repeat(4_000))
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ error: { code: 'context_length_exceeded', param: 'messages' } })
      await pause(150)
    }
  })

  it('is left to the engine where its tokens cannot be counted', async () => {
    const { upstream, chat } = await startUpstream(answers())
    expect((await chat(WATER.repeat(10_000))).status).toBe(200)
    expect(upstream.seen).toHaveLength(1)
    expect(upstream.seen[0]?.body['max_tokens']).toBe(1)
  })

  it('is refused in the engine’s words where the engine refuses it', async () => {
    const message = "This model's maximum context length is 32768 tokens. However, you requested 100000 tokens."
    const { chat } = await startUpstream(({ res }) => {
      res.writeHead(400, { 'content-type': 'application/json' })
      res.end(JSON.stringify({ object: 'error', message, type: 'BadRequestError', code: 400 }))
    })
    const response = await chat(WATER.repeat(10_000))
    expect(response.status).toBe(400)
    const { error } = (await response.json()) as { error: { code: string; message: string } }
    expect(error.code).toBe('context_length_exceeded')
    expect(error.message).toContain('maximum context length is 32768')
  })
})

describe('three megabytes of tools', () => {
  const tools = [{ type: 'function', function: { name: 'weir', description: WATER.repeat(70_000) } }]
  const schema = { type: 'json_schema', json_schema: { name: 'weir', schema: { description: WATER.repeat(70_000) } } }
  const call = { id: 'c', type: 'function', function: { name: 'weir', arguments: WATER.repeat(70_000) } }
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c', content: 'high' },
  ]

  it('are refused by an engine that reads them', { timeout: 60_000 }, async () => {
    const { chat } = await start()
    for (const more of [{ tools }, { functions: tools }, { messages }]) {
      const response = await chat('hi', undefined, more)
      expect(response.status).toBe(400)
      expect(await response.json()).toMatchObject({ error: { code: 'context_length_exceeded' } })
    }
  })

  it('are seen, and charged to the tenant’s budget', { timeout: 60_000 }, async () => {
    const allowance = { tokens: { perMinute: 20_000, burst: 20_000 } }
    const { tenants } = testTree() as { tenants: Tree[] }
    const { platform, chat, upstream } = await startUpstream(answers(), {
      tenants: [{ ...tenants[0], allowance }, tenants[1]],
    })
    for (const more of [{ tools }, { functions: tools }, { response_format: schema }, { messages }]) {
      const response = await chat('hi', undefined, more)
      expect(promptTokensSeen(platform)).toBeGreaterThan(400_000)
      expect(response.status).toBe(429)
      expect(await response.json()).toMatchObject({ error: { code: 'rate_limit_tokens' } })
    }
    expect(upstream.seen).toHaveLength(0)
    expect((await chat('hi', GLOBEX_KEY, { tools })).status).toBe(200)
  })
})

describe('a budget that an estimate says can never pay', () => {
  it('pays when it is full, as long as the prompt may be shorter than it looks', async () => {
    const { tenants } = testTree() as { tenants: Tree[] }
    const allowance = { tokens: { perMinute: 6_000, burst: 8_000 } }
    const { chat } = await startUpstream(answers(), { tenants: [{ ...tenants[0], allowance }, tenants[1]] })
    // About 10,000 tokens, give or take.
    expect((await chat(WATER.repeat(1_000))).status).toBe(200)
    // About 40,000: too much at its least.
    const response = await chat(WATER.repeat(4_000))
    expect(response.status).toBe(429)
    expect(response.headers.get('x-should-retry')).toBe('false')
  })
})
