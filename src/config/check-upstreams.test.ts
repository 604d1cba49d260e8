import { describe, expect, it } from 'vitest'
import type { RegistryEntry } from '../domain/registry.ts'
import { checkEntered, type Upstreams } from './check-upstreams.ts'

const UPSTREAMS: Upstreams = { hostsAllowed: [], keyVariables: ['*_API_KEY', 'UPSTREAM_*'], folders: ['/etc/engines'] }

const pool = (backend: Record<string, unknown>): RegistryEntry => ({
  kind: 'pool',
  name: 'p',
  body: { model: 'm', backend: { kind: 'http-openai', ...backend } },
})

const problemsOf = (entry: RegistryEntry, upstreams = UPSTREAMS): string[] =>
  checkEntered(entry, { upstreams }).map(({ path, text }) => `${path.join('.')} ${text}`)

describe('what an administrator enters', () => {
  it.each(['VLLM_API_KEY', 'UPSTREAM_KEY', 'UPSTREAM_'])('may name the variable %s', (apiKeyEnv) =>
    expect(problemsOf(pool({ apiKeyEnv }))).toEqual([]),
  )

  it.each([
    'DATABASE_URL',
    'PATH',
    'AWS_SECRET_ACCESS_KEY',
    'SPILLWAY_ADMIN_KEY',
    // These match a pattern, but hold secrets of our own.
    'EMBEDDER_API_KEY',
    'XVLLM_API_KEYS',
  ])('may not name the variable %s', (apiKeyEnv) => {
    const [problem] = problemsOf(pool({ apiKeyEnv }))
    expect(problem).toMatch(/^backend\.apiKeyEnv is ".*", which upstreams\.keyVariables does not allow/)
  })

  it('may name any variable where the file says so, except ours', () => {
    const open = { ...UPSTREAMS, keyVariables: ['*'] }
    expect(problemsOf(pool({ apiKeyEnv: 'ANYTHING' }), open)).toEqual([])
    expect(problemsOf(pool({ apiKeyEnv: 'RETRIEVAL_KEY' }), open)).toHaveLength(1)
    expect(problemsOf(pool({ apiKeyEnv: 'DATABASE_URL' }), open)).toHaveLength(1)
  })

  it.each([
    ['/etc/engines/ca.pem', 0],
    ['/etc/engines/deep/ca.pem', 0],
    ['/etc/engines', 1],
    ['/etc/engines-of-others/ca.pem', 1],
    ['/etc/engines/../passwd', 1],
    ['/etc/engines/./ca.pem', 1],
    ['etc/engines/ca.pem', 1],
    ['/etc/passwd', 1],
  ])('may name the file %s: %i problems', (caFile, count) => {
    expect(problemsOf(pool({ tls: { caFile } }))).toHaveLength(count)
    expect(problemsOf(pool({ tls: { caFile } }), { ...UPSTREAMS, folders: [] })).toHaveLength(1)
  })

  it.each([
    ['kubernetes', { service: 's' }],
    ['inferencePool', { pool: 'p' }],
  ])('may not send the pod’s own token to an address of its choice, nor any file (%s)', (source, named) => {
    const away = { ...named, apiUrl: 'http://example.com' }
    expect(problemsOf(pool({ discover: { [source]: away } }))).toEqual([
      expect.stringContaining(`backend.discover.${source}.apiUrl needs a tokenFile of its own`),
    ])
    expect(problemsOf(pool({ discover: { [source]: { ...away, tokenFile: '/etc/shadow' } } }))).toEqual([
      expect.stringContaining(`backend.discover.${source}.tokenFile is not below`),
    ])
    const own = { ...away, tokenFile: '/etc/engines/token' }
    expect(problemsOf(pool({ discover: { [source]: own } }))).toEqual([])
  })

  it('may name no source of credentials but a file where files may be', () => {
    expect(problemsOf(pool({ credential: { file: '/etc/engines/token' } }))).toEqual([])
    expect(problemsOf(pool({ credential: { file: '/etc/shadow' } }))).toEqual([
      expect.stringMatching(/^backend\.credential\.file is not below/),
    ])
    for (const credential of [{ command: ['id'] }, { metadata: 'aws' }]) {
      expect(problemsOf(pool({ credential }))).toEqual([
        expect.stringMatching(/^backend\.credential\.\w+ may not be entered here/),
      ])
    }
  })

  it('may name a profile that is a file only where files may be', () => {
    const inside = '/etc/engines/learned.json'
    expect(problemsOf(pool({ profile: 'h100-llama-8b' }))).toEqual([])
    expect(problemsOf(pool({ profile: inside, profiles: [inside, 'h100-llama-8b'] }))).toEqual([])
    const [profile, profiles] = problemsOf(pool({ profile: '/home/ada/x.json', profiles: ['/etc/engines/../x.json'] }))
    expect(profile).toMatch(/^backend\.profile is not below a folder of upstreams\.folders/)
    expect(profiles).toMatch(/^backend\.profiles is not below a folder/)
  })

  it('has no control characters anywhere', () => {
    const release: RegistryEntry = {
      kind: 'release',
      name: 'm@1',
      body: { artifact: 's3://x\ny', labels: ['a\u001b'] },
    }
    expect(problemsOf(release).map((problem) => problem.split(' ')[0])).toEqual(['artifact', 'labels.0'])
  })

  it('names no link-local replica', () => {
    const replica: RegistryEntry = { kind: 'replica', name: 'r', body: { pool: 'p', url: 'http://169.254.169.254' } }
    expect(problemsOf(replica)).toEqual([expect.stringMatching(/^url is a link-local address/)])
  })
})
