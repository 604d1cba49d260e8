import { afterAll, beforeAll, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { postJson, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** What an administrator may not make the server call, read or send. Nothing here is ever called: all is refused. */

const ADMIN_KEY = 'sk-test-admin'
let platform: TestPlatform
beforeAll(async () => {
  const admin = { keys: [{ id: 'ops', hash: hashKey(ADMIN_KEY) }] }
  platform = await startPlatform(testTree({ admin, upstreams: { folders: ['/nowhere'] } }))
}, 60_000)
afterAll(() => platform?.close())

const pool = (url: string, backend: object = {}): object => ({
  id: 'p',
  model: 'fresh',
  backend: { kind: 'http-openai', ...backend },
  replicas: [url],
})
const URL_OF_AN_ENGINE = 'http://127.0.0.1:1/v1'
const discover = { kubernetes: { service: 's', apiUrl: 'https://example.com' } }

it.each([
  ['a link-local address', pool('http://169.254.169.254/latest'), /link-local/, 'replicas[0]'],
  ['one in other letters', pool('http://2852039166/latest'), /link-local/, 'replicas[0]'],
  ['a metadata service', pool('http://metadata.google.internal'), /metadata service/, 'replicas[0]'],
  ['another scheme', pool('file:///etc/passwd'), /such as http/, 'replicas[0]'],
  ['a variable', pool(URL_OF_AN_ENGINE, { apiKeyEnv: 'DATABASE_URL' }), /upstreams.keyVariables/, 'backend.apiKeyEnv'],
  ['a file', pool(URL_OF_AN_ENGINE, { tls: { caFile: '/etc/passwd' } }), /upstreams.folders/, 'backend.tls.caFile'],
  ['a header', pool(URL_OF_AN_ENGINE, { headers: { 'x-a': 'b\r\nc: d' } }), /line break/, 'backend.headers.x-a'],
  ['a token', pool(URL_OF_AN_ENGINE, { discover }), /tokenFile/, 'backend.discover.kubernetes.apiUrl'],
])('%s is refused with the place and what to do', async (_what, given, message, param) => {
  const response = await postJson(
    `${platform.address}/admin/v1/models`,
    { model: { name: 'fresh' }, pools: [given], because: 'a test' },
    { authorization: `Bearer ${ADMIN_KEY}` },
  )
  const { error } = (await response.json()) as { error: { message: string; param: string } }
  expect([response.status, error.param]).toEqual([400, `pool.${param}`])
  expect(error.message).toMatch(message)
})
