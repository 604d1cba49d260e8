import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { runCli } from '../../src/cli/run-cli.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import {
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** `spillway orgs …`, `tenants …` and `keys …` as a person types them, against a server that runs. */
const ADMIN_KEY = 'sk-test-admin'
const WHY = ['--because', 'contract 17']
let platform: TestPlatform

beforeAll(async () => {
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  platform = await startPlatform(testTree({ admin, store: { path: 'memory:' } }))
}, 60_000)
afterAll(() => platform.close())
afterEach(() => void vi.unstubAllEnvs())

const spillway = (...words: string[]): Promise<Typed> => typed(...words, '--key', ADMIN_KEY)

interface Typed {
  readonly code: number
  readonly out: string
  readonly err: string
}

async function typed(...words: string[]): Promise<Typed> {
  const [out, err]: [string[], string[]] = [[], []]
  const code = await runCli([...words, '--url', platform.address], {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

async function chat(key: string): Promise<number> {
  const body = { model: MODEL, messages: [{ role: 'user', content: 'hi' }], max_tokens: 4 }
  const response = await postJson(`${platform.baseURL}/chat/completions`, body, authorization(key))
  await response.text()
  return response.status
}

const secretIn = (out: string): string => /spw_\S+/.exec(out)?.[0] ?? ''

describe('orgs, tenants and keys on the command line', () => {
  it('are made, listed, changed, rotated, revoked and removed', { timeout: 60_000 }, async () => {
    expect(await spillway('orgs', 'create', 'initech', '--slos', 'steady,patient', ...WHY)).toMatchObject({
      code: 0,
      out: 'Done: revision 1.',
    })
    await spillway('tenants', 'create', 'shop', '--org', 'initech', '--slo', 'patient', ...WHY)
    expect((await spillway('tenants', 'change', 'shop', '--storing', '{"ttlS":60}', ...WHY)).code).toBe(0)
    expect(JSON.parse((await spillway('tenants', 'list', '--org', 'initech', '--json')).out)).toMatchObject([
      { id: 'shop', storing: { ttlS: 60, countMax: 10_000 } },
    ])
    const terms = JSON.stringify({ models: [MODEL] })
    const first = secretIn((await spillway('keys', 'add', 'web', '--tenant', 'shop', '--terms', terms, ...WHY)).out)
    expect(await chat(first)).toBe(200)
    const rotated = await spillway('keys', 'rotate', 'web', '--grace', '60', '--json', ...WHY)
    const second = (JSON.parse(rotated.out) as { secret: string }).secret
    const { out: listed } = await spillway('keys', 'list', '--tenant', 'shop')
    const [head = '', row = ''] = listed.split('\n')
    expect(head).toMatch(/^KEY +TENANT +FROM +WEIGHT +MANAGES AS +SECRETS +LAST USED$/)
    const [, old = ''] = /^web +shop +registry +1 +- +([0-9a-f]{16}) [0-9a-f]{16} +\d{4}-\S+Z -$/.exec(row) ?? []
    expect((await spillway('keys', 'revoke', 'web', '--secret', old, ...WHY)).code).toBe(0)
    expect([await chat(first), await chat(second)]).toEqual([401, 200])
    await spillway('keys', 'change', 'web', '--weight', '3', '--terms', '{"canInfer":false}', ...WHY)
    expect(JSON.parse((await spillway('keys', 'list', '--tenant', 'shop', '--json')).out)).toMatchObject([
      { id: 'web', weight: 3, terms: { models: [MODEL], canInfer: false } },
    ])
    expect(await chat(second)).toBe(403)
    expect((await spillway('orgs', 'remove', 'initech', ...WHY)).err).toContain('has 1 tenants')
    expect((await spillway('tenants', 'remove', 'shop', ...WHY)).code).toBe(0)
    expect((await spillway('orgs', 'remove', 'initech', ...WHY)).code).toBe(0)
    expect(await chat(second)).toBe(401)
  })

  it('are managed with a key of the org, given or in the environment', { timeout: 60_000 }, async () => {
    await spillway('orgs', 'create', 'globo', '--slos', 'steady', ...WHY)
    await spillway('tenants', 'create', 'desk', '--org', 'globo', ...WHY)
    const manages = ['--role', 'org-admin', '--terms', '{"canManage":true}']
    const boss = secretIn((await spillway('keys', 'add', 'boss', '--tenant', 'desk', ...manages, ...WHY)).out)
    const added = await typed('keys', 'add', 'app', '--tenant', 'desk', '--key', boss, ...WHY)
    expect(added).toMatchObject({ code: 0, err: '' })
    vi.stubEnv('SPILLWAY_KEY', boss)
    expect((await typed('tenants', 'list')).out).toMatch(/^TENANT.*\ndesk +globo +registry +1$/)
    expect((await typed('orgs', 'list')).out).not.toContain('acme')
    expect((await typed('keys', 'list')).out.split('\n').slice(1)).toEqual([
      expect.stringMatching(/^app +desk +registry +1 +- +[0-9a-f]{16} +-$/),
      expect.stringMatching(/^boss +desk +registry +1 +org-admin +[0-9a-f]{16} +\d{4}-\S+Z$/),
    ])
    expect(await typed('orgs', 'change', 'globo', '--weight', '9', ...WHY)).toMatchObject({
      code: 1,
      err: expect.stringMatching(
        /role org-admin does not include change-org.*rule role-allows, authority role platform-admin/,
      ),
    })
    expect(await typed('keys', 'revoke', 'app', '--secret', 'nothing', ...WHY)).toMatchObject({
      code: 1,
      err: expect.stringContaining('first 8 or more digits of its hash'),
    })
    expect((await typed('keys', 'remove', 'acme-1', ...WHY)).err).toContain('There is no key "acme-1" in the org globo')
    expect((await typed('keys', 'remove', 'app', ...WHY)).code).toBe(0)
    expect(await typed('keys', 'list', '--key', 'sk-nobody')).toMatchObject({ code: 2 })
  })

  it('spillway me tells a key what it may do and has left', { timeout: 60_000 }, async () => {
    await spillway('orgs', 'create', 'hooli', '--slos', 'steady', ...WHY)
    await spillway('tenants', 'create', 'nucleus', '--org', 'hooli', ...WHY)
    const terms = JSON.stringify({
      models: [MODEL],
      expiresAtMs: 4_000_000_000_000,
      allowance: { requests: { perMinute: 6, burst: 6 }, concurrencyMax: 2 },
    })
    const key = secretIn((await spillway('keys', 'add', 'box', '--tenant', 'nucleus', '--terms', terms, ...WHY)).out)
    expect(await chat(key)).toBe(200)
    const { code, out } = await typed('me', '--key', key)
    expect(code).toBe(0)
    expect(out).toMatch(/^key +box of tenant nucleus in org hooli$/m)
    expect(out).toMatch(/^manages +no$/m)
    expect(out).toMatch(/^expiresAtMs +2096-10-02T07:06:40.000Z$/m)
    expect(out).toMatch(/^key +5 of 6 +no limit +0 of 2$/m)
    expect(out).toMatch(/^box +member +[0-9a-f]{16} +\d{4}-\S+Z$/m)
    expect(out).not.toContain('spw_')
    vi.stubEnv('SPILLWAY_KEY', key)
    expect(JSON.parse((await typed('me', '--json')).out)).toMatchObject({ object: 'spillway.me', tenant: 'nucleus' })
    vi.stubEnv('SPILLWAY_KEY', '')
    expect((await typed('me')).err).toContain('Give --key, or set SPILLWAY_KEY')
    expect(await typed('me', '--key', ADMIN_KEY)).toMatchObject({ code: 1 })
  })

  it('say what is missing', async () => {
    expect(await spillway('tenants', 'create', 'x', ...WHY)).toMatchObject({ code: 2 })
    expect((await spillway('keys', 'revoke', 'web', ...WHY)).err).toContain('--secret is missing')
    expect((await spillway('keys', 'change', 'web', '--terms', '{', ...WHY)).err).toContain('--terms is no JSON')
    expect((await spillway('tenants', 'change', 'x', '--storing', '{', ...WHY)).err).toContain('--storing is no JSON')
    expect((await spillway('orgs', 'remove', 'initech')).err).toContain('--because is missing')
    expect(await spillway('orgs', 'change', 'acme', '--weight', '2', ...WHY)).toMatchObject({ code: 1 })
  })
})
