import { afterEach, describe, expect, it } from 'vitest'
import { anthropicChecked } from '../support/anthropic-shapes.ts'
import { eventually } from '../support/eventually.ts'
import { checked } from '../support/openai-shapes.ts'
import { RawSocket, sendRaw } from '../support/raw-http.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  testTree,
} from '../support/start-platform.ts'

/** What is read at all: allowances that are spent before a body is parsed, also by requests that are refused later. */

/** A minute's allowance: a burst of a sixth of it at once, and then one in five seconds, in which a busy machine does little. */
const BURST_OF_TWO = 2 * 6
const CHAT = '/v1/chat/completions'
const chat = { model: MODEL, messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 1 }

const open: TestPlatform[] = []
const sockets: RawSocket[] = []
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const platform of open.splice(0)) await platform.close()
})

async function start(ingress: Tree, server: Tree = {}): Promise<TestPlatform> {
  const platform = await startPlatform(testTree({ server: { ingress, ...server } }))
  open.push(platform)
  return platform
}

const statusOf = async (response: Promise<Response>): Promise<number> => (await response).status

describe('requests', () => {
  it('are counted for each key, refused ones too; health checks and other keys go on', async () => {
    const platform = await start({ requestsPerMinute: BURST_OF_TWO })
    const { address } = platform
    const ask = (key: string, body: unknown = chat) => postJson(address + CHAT, body, authorization(key))
    // The first request of a key is charged to its address: it has not proved valid yet.
    expect(await statusOf(ask(ACME_KEY))).toBe(200)
    expect(await statusOf(ask(GLOBEX_KEY))).toBe(200)
    for (let i = 0; i < 2; i++) expect(await statusOf(ask(ACME_KEY, '{'))).toBe(400)
    const refused = await ask(ACME_KEY)
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(checked('error', await refused.json())).toMatchObject({
      error: { code: 'ingress_requests', type: 'rate_limit_error', param: null },
    })
    expect(await statusOf(ask(GLOBEX_KEY))).toBe(200)
    for (let i = 0; i < 10; i++) expect(await statusOf(fetch(`${address}/health`))).toBe(200)
    expect(await statusOf(fetch(`${address}/health/ready`))).toBe(200)
    expect(await statusOf(fetch(`${address}/v2/health/live`))).toBe(200)
    const isTold = () => platform.entries.some((entry) => entry.kind === 'ingress-refused' && entry.count === 1)
    await eventually('it is told', isTold)
  })

  it.each(['x-api-key', 'api-key'])('with a key in %s are counted for the same key', async (header) => {
    const { address } = await start({ requestsPerMinute: BURST_OF_TWO })
    const ask = (headers: Record<string, string>, path = CHAT) =>
      fetch(address + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headers },
        body: JSON.stringify(chat),
      })
    expect(await statusOf(ask(authorization()))).toBe(200)
    for (let i = 0; i < 2; i++) expect(await statusOf(ask({ [header]: ACME_KEY }))).toBe(200)
    expect(await statusOf(ask(authorization()))).toBe(429)
    expect(await statusOf(ask({ [header]: GLOBEX_KEY }))).toBe(200)
    const refused = await ask({ [header]: ACME_KEY }, '/v1/messages')
    expect(refused.status).toBe(429)
    expect(anthropicChecked('error', await refused.json())).toMatchObject({
      error: { type: 'rate_limit_error', spillway: { code: 'ingress_requests' } },
    })
  })

  it.each(['x-api-key', 'api-key'])('with wrong keys in %s are bounded', async (header) => {
    const { address } = await start({ failedKeysPerMinute: BURST_OF_TWO })
    const codes: unknown[] = []
    for (let i = 0; i < 4; i++) {
      const answer = await fetch(`${address}/v1/models`, { headers: { [header]: `sk-wrong-${i}` } })
      codes.push(((await answer.json()) as { error: { code: string } }).error.code)
    }
    expect(codes.map((code) => code === 'invalid_api_key')).toEqual([true, true, false, false])
    expect(codes.at(-1)).toBe('ingress_failed_keys')
  })

  it('that are refused move no budget', async () => {
    const tenants = (testTree()['tenants'] as Tree[]).map((tenant) => ({
      ...tenant,
      allowance: { requests: { perMinute: 60, burst: 9 } },
    }))
    const platform = await startPlatform(
      testTree({ tenants, server: { ingress: { requestsPerMinute: BURST_OF_TWO } } }),
    )
    open.push(platform)
    const ask = () => postJson(platform.address + CHAT, chat)
    const answers = []
    for (let i = 0; i < 6; i++) answers.push(await ask())
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429, 429])
    expect(answers.at(-1)?.headers.get('x-ratelimit-remaining-requests')).toBeNull()
    const left = Number(answers[2]?.headers.get('x-ratelimit-remaining-requests'))
    expect(left).toBeGreaterThanOrEqual(6)
  })
})

describe('bytes', () => {
  const bodyOf = (bytes: number): string => JSON.stringify({ ...chat, x: 'x'.repeat(bytes) })

  it('are counted before a body is read, announced or not', async () => {
    // A burst of 100 kB.
    const { address } = await start({ bytesPerMinute: 6 * 100_000 })
    const headers = { 'content-type': 'application/json', ...authorization() }
    expect(await statusOf(postJson(address + CHAT, chat))).toBe(200)
    expect(await statusOf(postJson(address + CHAT, bodyOf(150_000)))).toBe(200)
    const announced = await sendRaw(address, { path: CHAT, headers, body: bodyOf(1_000) })
    expect([announced.status, announced.text]).toEqual([429, expect.stringContaining('ingress_bytes')])
    const chunked = await sendRaw(address, { path: CHAT, headers, body: [bodyOf(1_000), ' '] })
    expect([chunked.status, chunked.text]).toEqual([429, expect.stringContaining('ingress_bytes')])
    expect(await statusOf(fetch(`${address}/v1/models`, { headers: authorization() }))).toBe(200)
  })

  it('that one caller may have arriving at once are bounded; another caller’s go on', async () => {
    const { address } = await start({}, { bodyBytesMax: 100_000 })
    for (const key of [ACME_KEY, GLOBEX_KEY]) {
      expect(await statusOf(postJson(address + CHAT, chat, authorization(key)))).toBe(200)
    }
    const head = `POST ${CHAT} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${ACME_KEY}\r\ncontent-type: application/json\r\n`
    const held = Array.from({ length: 16 }, () =>
      new RawSocket(address).send(`${head}content-length: 100000\r\nexpect: 100-continue\r\n\r\n`),
    )
    sockets.push(...held)
    for (const socket of held) await socket.until('its body is awaited', (received) => received.includes('100'))
    expect(await statusOf(postJson(address + CHAT, chat))).toBe(429)
    expect(await statusOf(postJson(address + CHAT, bodyOf(50_000), authorization(GLOBEX_KEY)))).toBe(200)
    for (const socket of held) socket.destroy()
    await eventually('there is room again', async () => (await statusOf(postJson(address + CHAT, chat))) === 200)
  })
})

describe('wrong keys', () => {
  it('are looked up a few times for each address; keys that were valid before go on', async () => {
    const { address } = await start({ failedKeysPerMinute: BURST_OF_TWO })
    const models = (key: string) => fetch(`${address}/v1/models`, { headers: authorization(key) })
    expect(await statusOf(models(ACME_KEY))).toBe(200)
    expect(await statusOf(models('sk-a'))).toBe(401)
    expect(await statusOf(models('sk-b'))).toBe(401)
    const refused = await models('sk-c')
    expect(refused.status).toBe(429)
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
    expect(checked('error', await refused.json())).toMatchObject({ error: { code: 'ingress_failed_keys' } })
    // A valid key that nobody has used yet cannot be told from a guess.
    expect(await statusOf(models(GLOBEX_KEY))).toBe(429)
    expect(await statusOf(models(ACME_KEY))).toBe(200)
    expect(await statusOf(fetch(`${address}/v1/models`))).toBe(401)
    expect(await statusOf(fetch(`${address}/admin/v1/models`, { headers: authorization('sk-d') }))).toBe(429)
    expect(await statusOf(fetch(`${address}/metrics`, { headers: authorization('sk-e') }))).toBe(429)
  })

  it('of tenants, administrators, peers and readers of metrics are the same allowance', async () => {
    const { address } = await start({ failedKeysPerMinute: 4 * 6 })
    const paths = ['/v1/models', '/admin/v1/models', '/metrics', '/v1/files', '/v1/vector_stores']
    const statuses = []
    for (const path of paths) statuses.push(await statusOf(fetch(address + path, { headers: authorization('sk-x') })))
    expect(statuses).toEqual([401, 401, 401, 401, 429])
  })
})
