import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { cli } from '../support/audit-cli.ts'
import { TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

const ADMIN_KEY = 'sk-test-admin'
const SECRET = 'the colour of my safe is aubergine'

describe('the audit of a server', { timeout: 120_000 }, () => {
  const folder = new TestFolder()
  const path = `${folder.path}/audit`
  let requestId = ''
  let printed = ''

  beforeAll(async () => {
    const platform = await startPlatform(
      testTree({
        admin: { keys: [{ id: 'root', hash: hashKey(ADMIN_KEY) }] },
        audit: { enabled: true, path, name: 'test.example/audit', strict: true },
        tenants: [
          { id: 'acme', slo: 'patient', keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] },
          {
            id: 'globex',
            slo: 'patient',
            audit: { strict: false },
            keys: [{ id: 'globex-1', hash: hashKey(GLOBEX_KEY) }],
          },
        ],
      }),
    )
    const ask = (key: string, body: object) =>
      postJson(`${platform.baseURL}/chat/completions`, body, authorization(key))
    const body = { model: MODEL, messages: [{ role: 'user', content: SECRET }], max_tokens: 4 }
    const answer = await ask(ACME_KEY, body)
    expect(answer.status).toBe(200)
    expect(await answer.json()).toMatchObject({ usage: { completion_tokens: 4 } })
    requestId = answer.headers.get('x-request-id') ?? ''
    const streamed = await ask(ACME_KEY, { ...body, stream: true })
    expect(await streamed.text()).toContain('[DONE]')
    expect((await ask(GLOBEX_KEY, { ...body, spillway: { deadline_ms: 1 } })).status).toBe(400)
    await (await ask(GLOBEX_KEY, body)).json()
    printed = platform.printed
    await platform.close()
  })
  afterAll(() => folder.remove())

  it('prints the public key of a new audit, with which everything is verified', async () => {
    const [, key = ''] = /(test\.example\/audit\/0\+[0-9a-f]{8}\+\S+)/.exec(printed) ?? []
    const { code, out, err } = await cli('audit', 'verify', '--folder', path, '--public-key', key)
    expect(out).toMatch(/events 1 to \d+ in 1 segments, \d+ checkpoints agree\. Sound\./)
    expect(err).toContain('--checkpoints')
    expect(code).toBe(0)
  })

  it('has every decision, with its reason, and no text', async () => {
    const { out } = await cli('audit', 'export', '--folder', path, '--names')
    const events = out.split('\n').map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(events[0]).toMatchObject({ seq: 1, kind: 'config.changed', actor: { kind: 'platform', name: 'config' } })
    const settled = events.filter(({ kind }) => kind === 'inference.settled')
    expect(settled).toHaveLength(4)
    expect(settled[0]).toMatchObject({
      tenant: 'acme',
      request: requestId,
      actor: { kind: 'key', name: 'acme-1' },
      decision: { outcome: 'completed', policy: expect.stringMatching(/^config-[0-9a-f]{12}$/) },
      usage: { output: 4 },
      text: expect.stringMatching(/^[\w-]{43}$/),
    })
    expect(settled[2]).toMatchObject({
      tenant: 'globex',
      decision: { outcome: 'rejected', code: 'deadline-infeasible' },
    })
    expect(events.filter(({ kind }) => kind === 'inference.begun')).toHaveLength(2)
    const chain = readFileSync(`${path}/0/000000000000001.spool`, 'latin1')
    for (const word of [SECRET, 'aubergine', 'acme-1']) expect(chain).not.toContain(word)
    const one = await cli('audit', 'export', '--folder', path, '--tenant', 'globex', '--kind', 'inference')
    expect(one.out.split('\n')).toHaveLength(2)
    expect((await cli('audit', 'export', '--folder', path, '--kind', 'nonsense')).code).toBe(2)
  })

  it('proves one request to whoever has the key', async () => {
    const file = `${folder.path}/one.tlog-proof`
    expect(await cli('audit', 'prove', requestId, '--folder', path, '--out', file)).toMatchObject({ code: 0 })
    const { code, out } = await cli('audit', 'verify', file, '--folder', path)
    expect({ code, out }).toMatchObject({ code: 0, out: expect.stringContaining(requestId) })
    expect(out).not.toContain('globex')
    writeFileSync(file, readFileSync(file, 'utf8').replace(/^index 1$|^index \d+$/m, 'index 0'))
    expect(await cli('audit', 'verify', file, '--folder', path)).toMatchObject({ code: 1 })
    expect(await cli('audit', 'prove', 'req_none', '--folder', path)).toMatchObject({ code: 1 })
  })

  it('finds a changed event and a cut tail, and says where', async () => {
    const kept = `${folder.path}/kept.checkpoints`
    writeFileSync(kept, (await cli('audit', 'checkpoints', '--all', '--folder', path)).out)
    const segment = `${path}/0/000000000000001.spool`
    const whole = readFileSync(segment)
    const changed = Buffer.from(whole)
    changed[whole.indexOf('"outcome":"completed"') + 13] = 88
    writeFileSync(segment, changed)
    const first = await cli('audit', 'verify', '--folder', path, '--json')
    expect(first.code).toBe(1)
    expect(JSON.parse(first.out)).toMatchObject({
      isSound: false,
      chains: [{ problems: [{ kind: 'changed', file: segment }] }],
    })
    writeFileSync(segment, whole.subarray(0, whole.lastIndexOf('{"v":1') - 4))
    const second = await cli('audit', 'verify', '--folder', path, '--checkpoints', kept)
    expect(second).toMatchObject({ code: 1, out: expect.stringContaining('WRONG cut-tail') })
    // The next start does not go on with it.
    const platform = await startPlatform(testTree({ audit: { enabled: true, path, name: 'test.example/audit' } }))
    await platform.close()
    expect(platform.printed).toContain('is not what was signed')
    expect(readFileSync(segment).length).toBe(whole.lastIndexOf('{"v":1') - 4)
    const { out } = await cli('audit', 'export', '--folder', `${path}/1`)
    expect(out).toContain('"kind":"gap"')
    writeFileSync(segment, whole)
  })

  it('writes nothing where it is off', async () => {
    const off = `${folder.path}/off`
    const platform = await startPlatform(testTree({ audit: { path: off } }))
    await platform.close()
    expect(existsSync(off)).toBe(false)
    expect(await cli('audit', 'verify', '--folder', off)).toMatchObject({
      code: 2,
      err: expect.stringContaining('no audit'),
    })
  })
})

describe('the audit while its server runs', { timeout: 120_000 }, () => {
  const folder = new TestFolder()
  const path = `${folder.path}/audit`
  const kept = `${folder.path}/kept.checkpoints`
  const got: { method: string; path: string; body: string; authorization: string }[] = []
  const receiver = createServer((req, res) => {
    let body = ''
    req.on('data', (piece) => {
      body += String(piece)
    })
    req.on('end', () => {
      got.push({ method: req.method ?? '', path: req.url ?? '', body, authorization: req.headers.authorization ?? '' })
      res.end()
    })
  })
  let platform: TestPlatform

  beforeAll(async () => {
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}`
    const budgets = [{ tokens: 1_000_000, kind: 'soft', perUser: true }]
    platform = await startPlatform(
      testTree({
        store: { path: `${folder.path}/data` },
        admin: { keys: [{ id: 'root', hash: hashKey(ADMIN_KEY) }] },
        audit: {
          enabled: true,
          path,
          name: 'live.example',
          checkpointS: 1,
          sinks: [
            { kind: 'file', path: kept },
            { kind: 'stdout' },
            { kind: 'http', url: `${url}/hook`, apiKey: 'a-token' },
            { kind: 's3', url: `${url}/bucket/audit`, accessKeyId: 'AKIA', apiKey: 'a-secret' },
            // Nobody listens there.
            { kind: 'http', url: 'http://127.0.0.1:9/hook' },
          ],
        },
        tenants: [
          { id: 'acme', slo: 'patient', allowance: { budgets }, keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] },
          { id: 'globex', slo: 'patient', keys: [{ id: 'globex-1', hash: hashKey(GLOBEX_KEY) }] },
        ],
      }),
    )
    const body = { model: MODEL, messages: [{ role: 'user', content: SECRET }], max_tokens: 2 }
    for (const user of ['customer-1', 'customer-1', 'customer-2']) {
      const answer = await postJson(`${platform.baseURL}/chat/completions`, { ...body, user }, authorization(ACME_KEY))
      expect(answer.status).toBe(200)
      await answer.json()
    }
  })
  afterAll(async () => {
    await platform.close()
    await new Promise((resolve) => receiver.close(resolve))
    folder.remove()
  })

  interface Page {
    readonly data: readonly Record<string, unknown>[]
    readonly has_more: boolean
    readonly next_page?: string
  }
  const search = async (query: string, key = ADMIN_KEY): Promise<Page> => {
    const response = await fetch(`${platform.address}/admin/v1/audit?${query}`, { headers: authorization(key) })
    expect(response.status).toBe(200)
    return (await response.json()) as Page
  }

  it('is searched by those who may, a page at a time', async () => {
    const settled = 'tenant=acme&kind=inference.settled'
    await eventually('the copy is there', async () => (await search(settled)).data.length === 3 || undefined, 30_000)
    const first = await search(`${settled}&limit=2`)
    expect(first).toMatchObject({ has_more: true, data: [{ tenant: 'acme' }, { tenant: 'acme' }] })
    const second = await search(`${settled}&limit=2&page=${encodeURIComponent(first.next_page ?? '')}`)
    expect(second).toMatchObject({ has_more: false, data: [{ tenant: 'acme' }] })
    expect(new Set([...first.data, ...second.data].map(({ seq }) => seq)).size).toBe(3)
    expect((await search('tenant=acme&user=customer-1&names=true')).data).toMatchObject([
      { user: 'customer-1', actor: { name: 'acme-1' } },
      { user: 'customer-1' },
    ])
    expect((await search('tenant=globex')).data).toEqual([])
    const asTenant = (path: string) => fetch(`${platform.address}${path}`, { headers: authorization(ACME_KEY) })
    expect((await asTenant('/admin/v1/audit')).status).toBe(403)
    expect((await asTenant('/v1/spillway/audit')).status).toBe(403)
    for (const wrong of ['kind=nonsense', 'from=yesterday', 'page=1', 'user=customer-1']) {
      const response = await fetch(`${platform.address}/admin/v1/audit?${wrong}`, { headers: authorization(ADMIN_KEY) })
      expect(response.status, wrong).toBe(400)
    }
  })

  it('records changes by administrators, with who and why, and its own searches', async () => {
    const change = (path: string, body: object) =>
      postJson(`${platform.address}/admin/v1${path}`, body, authorization(ADMIN_KEY))
    const org = { id: 'initech', slos: ['patient'], because: 'contract 17' }
    expect((await change('/orgs', org)).status).toBe(200)
    expect((await change('/tenants', { id: 'desk', orgId: 'initech', because: 'contract 17' })).status).toBe(200)
    const key = { id: 'peter', tenantId: 'desk', role: 'auditor', terms: { canManage: true }, because: 'he audits' }
    const made = (await (await change('/keys', key)).json()) as { secret: string }
    await eventually('it is copied', async () => (await search('kind=key')).data.length === 1 || undefined, 30_000)
    expect((await search('kind=key&names=true')).data).toMatchObject([
      {
        kind: 'key.created',
        actor: { kind: 'admin', name: 'root' },
        org: 'initech',
        tenant: 'desk',
        decision: { outcome: 'create-key', because: 'he audits' },
        key: 'peter',
      },
    ])
    expect((await search('kind=admin&org=initech')).data.map(({ kind }) => kind)).toEqual(['admin.tenant', 'admin.org'])
    // An org's auditor sees its org, and nothing else.
    const own = await fetch(`${platform.address}/v1/spillway/audit`, { headers: authorization(made.secret) })
    const seen = ((await own.json()) as Page).data
    expect(new Set(seen.map((event) => event['org']))).toEqual(new Set(['initech']))
    const searches = await eventually(
      'searches are recorded',
      async () => {
        const { data } = await search('kind=data.exported&limit=1000')
        return data.some(({ actor }) => (actor as { name: string }).name.includes('peter')) ? data : undefined
      },
      30_000,
    )
    expect(JSON.stringify(searches)).not.toContain('customer-1')
  })

  it('forgets an end user whose key is destroyed, and stays sound', async () => {
    const access = ['--url', platform.address, '--key', ADMIN_KEY]
    const erase = ['audit', 'erase', 'customer-1', '--tenant', 'acme', '--because', 'asked for it', ...access]
    expect(await cli(...erase)).toMatchObject({ code: 0, out: 'Done: 1 keys destroyed.' })
    expect(await cli(...erase)).toMatchObject({ code: 0, out: expect.stringContaining('Nothing to erase') })
    expect((await search('tenant=acme&user=customer-1')).data).toEqual([])
    expect((await search('tenant=acme&user=customer-2&names=true')).data).toHaveLength(1)
    const named = await cli('audit', 'export', '--folder', path, '--tenant', 'acme', '--names')
    expect(named.out).not.toContain('customer-1')
    expect(named.out).toContain('customer-2')
    expect(named.out).toContain('"kind":"erased"')
    await eventually(
      'it is signed',
      async () => (await cli('audit', 'verify', '--folder', path)).code === 0 || undefined,
    )
  })

  it('gives its checkpoints to all places that take them, and one that is away changes nothing', async () => {
    await eventually('all have one', () => new Set(got.map(({ method }) => method)).size === 2 || undefined, 30_000)
    const put = got.find(({ method }) => method === 'PUT')
    expect(put?.path).toMatch(/^\/bucket\/audit\/live\.example\/0\/\d{15}\.checkpoint$/)
    expect(put?.authorization).toMatch(/^AWS4-HMAC-SHA256 Credential=AKIA\/\d{8}\/us-east-1\/s3\/aws4_request,/)
    expect(got.find(({ method }) => method === 'POST')).toMatchObject({
      path: '/hook',
      authorization: 'Bearer a-token',
    })
    expect(platform.printed).toContain('{"audit_checkpoint":"live.example/0')
    // The sink that is away may be the last to be known.
    await eventually('it is told', () => platform.printed.includes('the sink http does not take checkpoints'))
    const ready = await eventually('readiness says so', async () => {
      const said = (await (await fetch(`${platform.address}/health/ready`)).json()) as Record<string, string>
      return said['because']?.includes('checkpoints do not reach http') && said
    })
    expect(ready['status']).toBe('ready')
    const verified = await cli('audit', 'verify', '--folder', path, '--checkpoints', kept, '--json')
    expect(JSON.parse(verified.out)).toMatchObject({ isSound: true })
    expect(await platform.metric('spillway_audit_sink_away', { sink: 'file' })).toBe(0)
  })
})
