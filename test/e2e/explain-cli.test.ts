import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../../src/cli/run-cli.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { answers, FakeUpstream, fails } from '../support/fake-upstream.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  upstreamTree,
} from '../support/start-platform.ts'

/** `spillway explain` and `spillway refusals` as a person types them, against a server that runs. */
const ADMIN_KEY = 'sk-test-admin'
const SECRET = 'a word that nobody may repeat'
const long = Array.from({ length: 21 }, (_, i) => ({
  role: i % 2 === 0 ? 'user' : 'assistant',
  content: `${SECRET} `.repeat(20),
}))

let upstream: FakeUpstream
let platform: TestPlatform
let degraded: string
let refusedAcme: string
let refusedGlobex: string

async function ask(key: string, body: object): Promise<string> {
  const chat = { model: MODEL, messages: [{ role: 'user', content: SECRET }], ...body }
  const response = await postJson(`${platform.baseURL}/chat/completions`, chat, authorization(key))
  await response.text()
  const id = response.headers.get('x-request-id')!
  await platform.settled(id)
  return id
}

beforeAll(async () => {
  upstream = await FakeUpstream.start()
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  platform = await startPlatform(upstreamTree([upstream.url], { admin }))
  const full = fails(503, {}, { 'retry-after-ms': '60' })
  upstream.next(full, full, full, answers())
  degraded = await ask(ACME_KEY, { messages: long, max_tokens: 2_000 })
  upstream.next(fails(401, ''), fails(404, ''))
  refusedAcme = await ask(ACME_KEY, {})
  refusedGlobex = await ask(GLOBEX_KEY, {})
}, 60_000)
afterAll(async () => {
  await platform.close()
  await upstream.close()
})

async function spillway(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const code = await runCli([...words, '--url', platform.address], {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

describe('explain', () => {
  it.each([
    ['an administrator', ADMIN_KEY],
    ['its tenant', ACME_KEY],
  ])('tells %s the rung, what was left out, the region and why', async (_who, key) => {
    const { code, out } = await spillway('explain', degraded, '--key', key)
    expect(code).toBe(0)
    expect(out).toContain('in region local')
    expect(out).toMatch(/turn 1 at .*, on rung full: nothing left out/)
    expect(out).toMatch(
      /turn 2 \(no replica had room, and waited \d+ ms for it\) at .* on rung trim-context: \d+ of 21 messages/,
    )
    expect(out).toMatch(/on rung cap-output: .* prompt tokens, at most 384 of 2000 output tokens/)
    expect(out).not.toContain(SECRET)
  })

  it('tells an administrator of any tenant’s request, a tenant of its own only, and a stranger nothing', async () => {
    expect((await spillway('explain', refusedGlobex, '--key', ADMIN_KEY)).out).toContain('globex asks')
    const other = await spillway('explain', refusedGlobex, '--key', ACME_KEY)
    expect(other).toMatchObject({ code: 1, err: expect.stringContaining('No such request is remembered') })
    expect(await spillway('explain', refusedGlobex, '--key', 'sk-nobody')).toMatchObject({ code: 1, out: '' })
    expect(await spillway('explain', 'req_none', '--key', ADMIN_KEY)).toMatchObject({ code: 1 })
  })
})

describe('refusals', () => {
  it('are listed to an administrator in a table that lines up, the newest first', async () => {
    const { code, out } = await spillway('refusals', '--key', ADMIN_KEY)
    expect(code).toBe(0)
    const [head = '', first = '', second = '', third] = out.split('\n')
    expect(head).toMatch(/^WHEN +REQUEST +TENANT +MODEL +CODE +COME BACK +WHY$/)
    expect(first).toContain(refusedGlobex)
    expect(first).toMatch(
      /globex +sim +replica-denied +never +The engine answered 404: it has no such address or model/,
    )
    expect(second).toContain(refusedAcme)
    expect(third).toBeUndefined()
    expect(out).not.toContain(SECRET)
  })

  it('are those of one tenant where that is asked, and as many as are asked', async () => {
    const listed = async (...words: string[]) =>
      (JSON.parse((await spillway('refusals', '--json', ...words)).out) as Array<{ request: string }>).map(
        ({ request }) => request,
      )
    expect(await listed('--key', ADMIN_KEY, '--tenant', 'acme')).toEqual([refusedAcme])
    expect(await listed('--key', ADMIN_KEY, '--limit', '1')).toEqual([refusedGlobex])
    expect(await listed('--key', ACME_KEY)).toEqual([refusedAcme])
    // A tenant cannot ask for another's.
    expect(await listed('--key', ACME_KEY, '--tenant', 'globex')).toEqual([refusedAcme])
  })

  it('are nothing to strangers, and the admin path is nothing to tenants', async () => {
    expect(await spillway('refusals', '--key', 'sk-nobody')).toMatchObject({ code: 1, out: '' })
    expect(await spillway('refusals', '--key', ADMIN_KEY, '--limit', '0')).toMatchObject({ code: 2 })
    const status = async (path: string, key: string) =>
      (await fetch(platform.address + path, { headers: authorization(key) })).status
    expect(await status('/admin/v1/refusals', ADMIN_KEY)).toBe(200)
    expect(await status(`/admin/v1/requests/${refusedAcme}`, ADMIN_KEY)).toBe(200)
    expect(await status('/admin/v1/refusals', ACME_KEY)).toBe(403)
    expect(await status(`/admin/v1/requests/${refusedAcme}`, ACME_KEY)).toBe(403)
    expect(await status('/spillway/refusals?limit=nonsense', ACME_KEY)).toBe(200)
  })

  it('say in `models show` which engine denies us, and why', async () => {
    const { out } = await spillway('models', 'show', MODEL, '--key', ADMIN_KEY)
    expect(out).toMatch(/ is denied: The engine answered 404: .* Mend its key, address or quota\.$/)
  })
})
