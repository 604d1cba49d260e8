import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { runCli } from '../../src/cli/run-cli.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import { AWS_CREDENTIAL, AWS_REGION, SagemakerServer } from '../support/sagemaker-server.ts'
import { json, ScriptedServer } from '../support/scripted-server.ts'
import { MODEL, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** `spillway models …` and `spillway replicas …` as a person types them, against a server that runs. */
const ADMIN_KEY = 'sk-test-admin'
const folder = mkdtempSync(join(tmpdir(), 'spillway-cli-'))
let platform: TestPlatform
let engine: FakeUpstream

beforeAll(async () => {
  engine = await FakeUpstream.start()
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  platform = await startPlatform(testTree({ admin }))
}, 60_000)
afterAll(async () => {
  await platform.close()
  await engine.close()
  rmSync(folder, { recursive: true, force: true })
})

async function spillway(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const isAsked = words.includes('--url') || words.includes('--help')
  const where = isAsked ? [] : ['--url', platform.address]
  const key = words.includes('--key') ? [] : ['--key', ADMIN_KEY]
  const code = await runCli([...words, ...where, ...(isAsked && words.includes('--help') ? [] : key)], {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

describe('models', () => {
  it('are listed in a table that lines up, and as JSON', async () => {
    const { code, out } = await spillway('models', 'list')
    expect(code).toBe(0)
    const [head = '', row = ''] = out.split('\n')
    expect(head).toMatch(/^MODEL +FROM +RELEASES +REPLICAS +CONTEXT +FALLBACK$/)
    expect(row).toMatch(/^sim +file +1 +1 of 1 ready/)
    expect(row.indexOf('file')).toBe(head.indexOf('FROM'))
    expect(JSON.parse((await spillway('models', 'list', '--json')).out)).toMatchObject([
      { name: MODEL, source: 'file' },
    ])
  })

  it('are added with flags, shown, given a release, and removed, with a history', { timeout: 60_000 }, async () => {
    const why = ['--because', 'asked for by search']
    const added = await spillway('models', 'add', 'qwen', '--replica', engine.url, '--context', '4096', ...why)
    expect(added).toMatchObject({ code: 0, out: 'Done: revision 1.' })
    await eventually('it is ready', () => platform.platform.turnstile.view().readyReplicas === 2)
    const { out: shown } = await spillway('models', 'show', 'qwen')
    expect(shown).toContain('qwen (registry)')
    expect(shown).toMatch(new RegExp(`qwen +qwen@1 +local +qwen-127.0.0.1:\\d+ +(warming|steady) +0 +${engine.url}`))

    const release = await spillway('models', 'add', MODEL, '--release', '2', '--replica', engine.url, ...why)
    expect(release).toMatchObject({ code: 0, err: '' })
    expect((await spillway('models', 'list')).out).toMatch(/^sim +file +1, 2 +/m)

    writeFileSync(join(folder, 'gemma.yaml'), 'model: { name: gemma, fallback: qwen }\nreleases: [{ version: v7 }]\n')
    expect(await spillway('models', 'add', '--from', join(folder, 'gemma.yaml'), ...why)).toMatchObject({ code: 0 })
    expect(await spillway('models', 'remove', 'qwen', ...why)).toMatchObject({
      code: 1,
      err: expect.stringContaining('odel gemma: fallback is "qwen", but there is no such model'),
    })
    expect(await spillway('models', 'remove', 'gemma', ...why)).toMatchObject({ code: 0 })
    expect(await spillway('models', 'remove', 'qwen', ...why)).toMatchObject({ code: 0 })
    const { out: history } = await spillway('models', 'history')
    const lines = history.split('\n')
    expect(lines[0]).toMatch(/^WHEN +REVISION +WHO +WHAT +NAME +WHY$/)
    expect(lines[1]).toMatch(/^\d{4}-\d\d-\d\dT\S+Z +5 +ada +\w+ removed +qwen +asked for by search$/)
    expect(JSON.parse((await spillway('models', 'history', 'gemma', '--json')).out)).toHaveLength(4)
    // The pool of the file's model was added under a name of its own.
    expect((await spillway('models', 'history', MODEL)).out).toMatch(/ pool added +sim-2 +asked for by search$/m)
  })

  it('a release is rolled out by hand, and shown', { timeout: 60_000 }, async () => {
    const why = ['--because', 'fine-tuned']
    await spillway('models', 'add', MODEL, '--release', '9', '--replica', engine.url, ...why)
    const start = () => spillway('rollout', 'start', MODEL, '--release', '9', ...why)
    const started = await eventually(
      'it is healthy',
      async () => {
        const answer = await start()
        return answer.code === 0 && answer
      },
      30_000,
    )
    expect(started.out).toMatch(
      /^MODEL +STABLE +CANARY +PHASE +SHARE +PAUSED +JUDGE\nsim +sim@1 +sim@9 +canary +5 % +no /,
    )
    expect((await spillway('rollout', 'show', '--json')).out).toContain('"canary":"sim@9"')
    expect((await spillway('rollout', 'show', MODEL)).out).toContain('sim@9')
    expect(await start()).toMatchObject({ code: 1, err: expect.stringContaining('being tried') })
    for (const step of ['pause', 'resume', 'promote', 'roll-back', 'undo'])
      expect(await spillway('rollout', step, MODEL, ...why)).toMatchObject({ code: 0, err: '' })
    expect((await spillway('rollout', 'show', MODEL)).out).toMatch(/sim@9 +canary +25 % +yes/)
    expect(await spillway('rollout', 'start', MODEL, ...why)).toMatchObject({
      code: 2,
      err: expect.stringContaining('--release is missing'),
    })
  })

  it('a replica is drained and used again', async () => {
    const id = `${MODEL}-local-0`
    expect(await spillway('replicas', 'drain', id, '--because', 'new driver')).toMatchObject({ code: 0 })
    expect(platform.platform.policies.health.kindOf(id)).toBe('draining')
    expect(await spillway('replicas', 'undrain', id, '--because', 'done')).toMatchObject({ code: 0 })
    expect(platform.platform.policies.health.kindOf(id)).toBe('warming')
  })
})

describe('MLflow', () => {
  const version = (number: number, more: object = {}) => ({
    name: 'ranker',
    version: String(number),
    creation_timestamp: 1_700_000_000_000 + number,
    current_stage: 'None',
    source: `s3://models/ranker/${number}`,
    status: 'READY',
    ...more,
  })

  it('versions become releases with aliases and stages, once, and later ones are added', {
    timeout: 60_000,
  }, async () => {
    let versions = [
      version(10),
      version(2, { current_stage: 'Production' }),
      version(3, { status: 'PENDING_REGISTRATION' }),
    ]
    const mlflow = await ScriptedServer.start({
      'GET /api/2.0/mlflow/registered-models/search': json({
        registered_models: [{ name: 'ranker', aliases: [{ alias: 'champion', version: '2' }] }],
      }),
      // One a page: pages are followed.
      'GET /api/2.0/mlflow/model-versions/search': (asked, res) => {
        const at = Number(asked.query.get('page_token') ?? 0)
        const next = at + 1 < versions.length ? { next_page_token: String(at + 1) } : {}
        return json({ model_versions: versions.slice(at, at + 1), ...next })(asked, res)
      },
    })
    const run = () =>
      spillway('models', 'import-mlflow', '--mlflow', mlflow.url, '--model', 'ranker', '--because', 'nightly')
    try {
      expect(await run()).toMatchObject({
        code: 0,
        out: 'Imported 2, 10 for ranker.\nLeft out: version 3 is PENDING_REGISTRATION.',
      })
      const show = async () =>
        JSON.parse((await spillway('models', 'show', 'ranker', '--json')).out) as { releases: object[] }
      expect((await show()).releases).toMatchObject([
        { version: '2', artifact: 's3://models/ranker/2', labels: ['Production', 'champion'], source: 'registry' },
        { version: '10' },
      ])
      expect((await run()).out).toMatch(/^Nothing new for ranker/)
      versions = [version(11), ...versions.slice(0, 2)]
      expect((await run()).out).toBe('Imported 11 for ranker.')
      expect((await show()).releases).toHaveLength(3)
      expect((await spillway('models', 'history', 'ranker')).out).toContain('nightly')
    } finally {
      await mlflow.close()
    }
  })

  it.each([
    ['nobody there', 'http://127.0.0.1:9', 'could not be asked'],
    ['something else', undefined, 'the registry answered'],
  ])('%s: one line', async (_what, url, message) => {
    const answer = await spillway(
      'models',
      'import-mlflow',
      '--mlflow',
      url ?? engine.url,
      '--model',
      'm',
      '--because',
      'x',
    )
    expect(answer).toMatchObject({ code: 1, err: expect.stringContaining(message) })
    expect(answer.err.split('\n')).toHaveLength(1)
  })
})

describe('SageMaker', () => {
  const words = ['models', 'import-sagemaker', '--group', 'llama', '--because', 'nightly']
  let registry: SagemakerServer
  beforeAll(async () => {
    registry = await SagemakerServer.start()
  })
  afterAll(() => registry.close())
  beforeEach(() => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', AWS_CREDENTIAL.accessKeyId)
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', AWS_CREDENTIAL.secretKey)
    vi.stubEnv('AWS_SESSION_TOKEN', AWS_CREDENTIAL.sessionToken)
    vi.stubEnv('AWS_REGION', AWS_REGION)
  })
  afterEach(() => {
    vi.unstubAllEnvs()
  })

  it('approved versions become releases with their stage, once', { timeout: 60_000 }, async () => {
    registry.packages = [
      { ModelPackageVersion: 3, ModelApprovalStatus: 'Rejected' },
      { ModelPackageVersion: 2, Containers: [{ ModelDataUrl: 's3://w/2' }] },
      { ModelPackageVersion: 1, ModelLifeCycle: { Stage: 'Production', StageStatus: 'Approved' } },
    ]
    const run = () => spillway(...words, '--endpoint', registry.url)
    expect(await run()).toMatchObject({
      code: 0,
      out: 'Imported 1, 2 for llama.\nLeft out: version 3 is Rejected.',
    })
    const { releases } = JSON.parse((await spillway('models', 'show', 'llama', '--json')).out) as { releases: object[] }
    expect(releases).toMatchObject([
      { version: '1', labels: ['Production'], source: 'registry' },
      { version: '2', artifact: 's3://w/2' },
    ])
    expect((await run()).out).toMatch(/^Nothing new for llama/)
  })

  const cases: ReadonlyArray<readonly [string, Record<string, string>, readonly string[], number, RegExp]> = [
    ['no credentials', { AWS_SECRET_ACCESS_KEY: '' }, [], 2, /credentials are missing\. Set AWS_ACCESS_KEY_ID/],
    ['no region', { AWS_REGION: '', AWS_DEFAULT_REGION: '' }, [], 2, /Give --region, or set AWS_REGION/],
    ['a region that is none', {}, ['--region', 'evil.example/'], 2, /the region is missing or no name/],
    ['a wrong endpoint', {}, ['--endpoint', 'http://169.254.169.254'], 2, /--endpoint is a link-local address/],
    ['a wrong secret', { AWS_SECRET_ACCESS_KEY: 'no' }, ['--endpoint', 'OURS'], 1, /check the secret key, the region/],
  ]
  it.each(cases)('%s: one line, without a secret', async (_what, env, more, code, message) => {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
    const answer = await spillway(...words, ...more.map((word) => (word === 'OURS' ? registry.url : word)))
    expect(answer).toMatchObject({ code, err: expect.stringMatching(message) })
    expect(answer.err.trim().split('\n')).toHaveLength(1)
    expect(answer.err).not.toContain(AWS_CREDENTIAL.secretKey)
  })
})

describe('what goes wrong is one line that says what to do', () => {
  const cases: ReadonlyArray<readonly [string, readonly string[], number, RegExp]> = [
    ['no server', ['models', 'list', '--url', 'http://127.0.0.1:9'], 2, /no server answers at .* "spillway serve"/],
    ['a wrong key', ['models', 'list', '--key', 'sk-nobody'], 2, /does not know this admin key/],
    ['no reason', ['models', 'remove', 'x'], 2, /--because is missing/],
    ['an empty reason', ['models', 'remove', 'x', '--because', ' '], 2, /--because is missing/],
    ['no name', ['models', 'show'], 2, /which model\? Try: spillway models show/],
    ['nobody of that name', ['models', 'show', 'nobody'], 1, /There is no model nobody\. Known: sim/],
    ['what the file says', ['models', 'remove', MODEL, '--because', 'x'], 1, /in the configuration file, which wins/],
    ['two kinds', ['models', 'remove', 'x', '--pool', '--release', '--because', 'x'], 2, /exclude each other/],
    ['a bad address', ['models', 'add', 'x', '--replica', 'gpu-1', '--because', 'x'], 1, /an address such as http/],
    ['a bad number', ['models', 'add', 'x', '--context', 'many', '--because', 'x'], 2, /--context is "many"/],
    ['no file', ['models', 'add', '--from', '/no/such/file.yaml', '--because', 'x'], 1, /no\/such\/file/],
  ]
  it.each(cases)('%s', async (_what, words, code, message) => {
    const answer = await spillway(...words)
    expect(answer.err).toMatch(message)
    expect(answer.code).toBe(code)
    expect(answer.err.split('\n')).toHaveLength(1)
  })

  it('a server that is not Spillway', async () => {
    const { code, err } = await spillway('models', 'list', '--url', engine.url)
    expect(err).toMatch(/is not Spillway/)
    expect(code).toBe(2)
  })
})
