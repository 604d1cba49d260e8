import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fillDefaults, isValid } from '../base/check-schema.ts'
import { ConfigError } from './config-error.ts'
import { asNode, explain } from './explain.ts'
import { parseConfigFile } from './fs-config-file.ts'
import { buildConfig, demoBindProblem, loadConfig } from './load.ts'
import { redacted } from './redact.ts'
import { ConfigSchema } from './schema.ts'

const HASH = `sha256:${'ab'.repeat(32)}`
const TENANTS = `tenants: [{ id: a, keys: [{ id: k, hash: "${HASH}" }] }]`

function load(yaml: string | undefined, env: Record<string, string> = {}, flags: Record<string, string> = {}) {
  return buildConfig(yaml === undefined ? undefined : parseConfigFile('s.yaml', yaml), env, flags)
}

function problemsOf(yaml: string | undefined, env: Record<string, string> = {}): readonly string[] {
  try {
    load(yaml, env)
    return []
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
}

describe('defaults', () => {
  it('run the demo without a file', () => {
    const config = load(undefined)
    expect(config.models.map((model) => model.name)).toEqual(['spill-large', 'spill-small', 'spill-embed'])
    expect(config.models[0]?.fallback).toBe('spill-small')
    expect(config.tenants.map((tenant) => [tenant.id, tenant.weight])).toEqual([
      ['acme', 4],
      ['globex', 2],
      ['initech', 1],
    ])
    expect(config.server).toMatchObject({ host: '127.0.0.1', port: 8080, bodyBytesMax: 16_777_216 })
    expect(config.file).toBeUndefined()
  })
  it('keep the models but not the tenants of the demo beside a file', () => {
    expect(load(TENANTS).models).toHaveLength(3)
    expect(problemsOf('seed: 2')).toEqual([
      's.yaml: the file lacks "tenants". Add it (tenants: who may send requests).',
    ])
  })
  it('take an empty section and an empty file for absent ones', () => {
    expect(load(`server:\n${TENANTS}`).server.port).toBe(8080)
    expect(problemsOf('')).toHaveLength(1)
  })
  it('are frozen all the way down', () => {
    const config = load(undefined)
    expect(Object.isFrozen(config)).toBe(true)
    expect(Object.isFrozen(config.tenants[0]?.keys[0])).toBe(true)
  })
})

describe('precedence', () => {
  const yaml = `queue: { requestsMax: 10 }\nserver: { port: 1000 }\n${TENANTS}`
  it('is flag, environment, file, default', () => {
    expect(load(yaml).queue.requestsMax).toBe(10)
    expect(load(yaml, { MAX_QUEUE_SIZE: '20', PORT: '2000' }).queue.requestsMax).toBe(20)
    expect(load(yaml, { PORT: '2000' }, { 'server.port': '3000' }).server.port).toBe(3000)
    expect(load(yaml, { MAX_QUEUE_SIZE: '' }).queue.requestsMax).toBe(10)
    expect(load(yaml).queue.waitMsMax).toBe(30_000)
  })
  it('takes a number or a word where a setting may be either', () => {
    const processes = (text: string) => load(undefined, { SPILLWAY_SERVER_PROCESSES: text }).server.processes
    expect([processes(''), processes('4'), processes('auto')]).toEqual([1, 4, 'auto'])
    expect(() => processes('all')).toThrow('SPILLWAY_SERVER_PROCESSES (server.processes) is "all"')
  })
  it('keeps the names of the reference documents', () => {
    const config = load(undefined, {
      HOST: '::1',
      PORT: '1',
      MAX_QUEUE_SIZE: '2',
      MAX_BATCH_SIZE: '3',
      BATCH_TIMEOUT_MS: '4',
      RETRIEVAL_BUDGET_MS: '5',
      ADMISSION_SAFETY_MARGIN: '0.6',
      CACHE_TTL_S: '7',
      LOG_LEVEL: 'debug',
      LOG_FORMAT: 'json',
      SPILLWAY_SEED: '8',
      SPILLWAY_SERVER_BASE_PATH: '/llm',
    })
    expect(config).toMatchObject({
      server: { host: '::1', port: 1, basePath: '/llm' },
      queue: { requestsMax: 2 },
      engine: { batchSizeMax: 3, batchTimeoutMs: 4 },
      retrieval: { budgetMs: 5, cacheTtlS: 7 },
      admission: { safetyMargin: 0.6 },
      logging: { level: 'debug', format: 'json' },
      seed: 8,
    })
  })
})

describe('a problem is one line: where, what, what to do', () => {
  const pool = (text: string) => `${TENANTS}\nmodels: [{ name: m }]\npools:\n  - model: m\n${text}`
  it.each([
    [
      'unknown setting',
      `server:\n  prot: 1\n${TENANTS}`,
      's.yaml:2: server.prot is not a setting. Did you mean "port"?',
    ],
    ['unknown section', `sever: {}\n${TENANTS}`, 's.yaml:1: sever is not a setting. Did you mean "server"?'],
    [
      'too large',
      `${TENANTS}\nserver:\n  port: 70000`,
      's.yaml:3: server.port is 70000. Set it to a whole number from 0 up to 65535.',
    ],
    [
      'not whole',
      `${TENANTS}\nqueue: { requestsMax: 1.5 }`,
      's.yaml:2: queue.requestsMax is 1.5. Set it to a whole number from 1 up to 1000000000.',
    ],
    [
      'not a number',
      `${TENANTS}\nadmission: { safetyMargin: lots }`,
      's.yaml:2: admission.safetyMargin is "lots". Set it to a number from 0 below 1.',
    ],
    ['wrong choice', `${TENANTS}\nlogging:\n  level: wran`, 's.yaml:3: logging.level is "wran". Did you mean "warn"?'],
    [
      'no choice near',
      `${TENANTS}\nlogging: { format: xml }`,
      's.yaml:2: logging.format is "xml". Set it to auto, json or pretty.',
    ],
    [
      'section is no block',
      `${TENANTS}\nserver: 8080`,
      's.yaml:2: server is 8080. Write it as a block of settings ("name: value" lines).',
    ],
    ['list is none', 'tenants: acme', 's.yaml:1: tenants is "acme". Write it as a list ("- " lines).'],
    [
      'unknown backend',
      pool('    backend: { kind: http-openia }'),
      's.yaml:5: pools[0].backend.kind is "http-openia". Did you mean "http-openai"?',
    ],
    [
      'a key that is not sent',
      pool('    backend: { kind: http-openai, url: "http://a:1", auth: none, apiKey: k }'),
      's.yaml:5: pools[0].backend.auth is "none", but a key is given. Remove one of them.',
    ],
    [
      'a certificate without its key',
      pool('    backend: { kind: http-oip, url: "https://a:1", tls: { certFile: us.pem } }'),
      's.yaml:5: pools[0].backend.tls has a certificate without its key, or the other way round. Give both.',
    ],
    [
      'a fallback of another kind',
      `${TENANTS}\nmodels: [{ name: m, fallback: n, kind: vision }, { name: n }]\npools: [{ model: m, backend: { kind: simulated } }, { model: n, backend: { kind: simulated } }]`,
      's.yaml:2: models[0].fallback is "n", which is for chat, not vision. Name one of its kind.',
    ],
    [
      'an embedder that is no model',
      `${TENANTS}\nretrieval: { embedder: { kind: platform, model: spill-small } }`,
      's.yaml:2: retrieval.embedder.model is "spill-small", but there is no such embedding model. Known: spill-embed.',
    ],
    [
      'an embedder of two kinds',
      `${TENANTS}\nretrieval: { embedder: { kind: platform, model: spill-embed, url: "http://a:1/v1" } }`,
      's.yaml:2: retrieval.embedder.url is set, but the embedder is of kind "platform". Remove one of them.',
    ],
    [
      'a short secret, which is not shown',
      `${TENANTS}\nretrieval: { apiKey: tooshort }`,
      's.yaml:2: retrieval.apiKey is too short: 8 of at least 16 characters. Lengthen it.',
    ],
    [
      'an empty secret',
      `${TENANTS}\nretrieval: { apiKey: "" }`,
      's.yaml:2: retrieval.apiKey is empty. Set it, or remove it.',
    ],
    [
      'a link-local address',
      pool('    backend: { kind: http-openai, url: "http://169.254.169.254/v1" }'),
      's.yaml:5: pools[0].backend.url is a link-local address. Set it to an engine’s address, or allow this one with upstreams.hostsAllowed.',
    ],
    [
      'a header that would end the headers',
      pool('    backend: { kind: http-openai, url: "http://a/v1", headers: { x-key: "a\\r\\nb: c" } }'),
      's.yaml:5: pools[0].backend.headers.x-key has a line break, or a letter that no header can carry. Remove it.',
    ],
    [
      'backend without kind',
      pool('    backend: { url: "http://a:1/v1" }'),
      's.yaml:5: pools[0].backend has no "kind". Add "kind: simulated" or "kind: http-openai" or "kind: http-oip".',
    ],
    [
      'setting of another kind',
      pool('    backend: { kind: simulated, url: "http://a" }'),
      's.yaml:5: pools[0].backend.url is not a setting. Remove it; known here: kind, profile, profiles, hidden.',
    ],
    [
      'no address',
      pool('    backend: { kind: http-openai }'),
      's.yaml:4: pools[0] has no address. Set backend.url, list the addresses under replicas, or let backend.discover find them.',
    ],
    [
      'bad address',
      pool('    backend: { kind: http-openai, url: gpu-1 }'),
      's.yaml:5: pools[0].backend.url is "gpu-1". Set it to an address such as http://gpu-1:8000/v1.',
    ],
    [
      'key variable not set',
      pool('    backend: { kind: http-openai, url: "http://a/v1", apiKeyEnv: NO_SUCH }'),
      's.yaml:5: pools[0].backend.apiKeyEnv is "NO_SUCH", but no such variable is set. Set it, or remove this line.',
    ],
    [
      'unknown model',
      `${TENANTS}\nmodels: [{ name: m, fallback: n }]\npools: [{ model: m, backend: { kind: simulated } }]`,
      's.yaml:2: models[0].fallback is "n", but there is no such model. Known: m.',
    ],
    [
      'name used twice',
      `${TENANTS}\nmodels: [{ name: m, aliases: [m] }]\npools: [{ model: m, backend: { kind: simulated } }]`,
      's.yaml:2: models[0].aliases[0] is "m", which is a model or alias already. Give each its own.',
    ],
    [
      'unknown profile',
      pool('    backend: { kind: simulated, profile: h100-lama-8b }'),
      's.yaml:5: pools[0].backend.profile is "h100-lama-8b", but there is no such GPU profile. Did you mean "h100-llama-8b"?',
    ],
    [
      'weight of an org that nobody belongs to',
      `orgs: [{ id: acne, weight: 3 }]\ntenants: [{ id: a, org: acme }]`,
      's.yaml:1: orgs[0].id is "acne", but there is no such org of a tenant. Did you mean "acme"?',
    ],
    [
      'two weights of one org',
      `orgs: [{ id: a, weight: 3 }, { id: a, weight: 4 }]\ntenants: [{ id: a }]`,
      's.yaml:1: orgs[1].id is "a", which is an org already. Give each its own.',
    ],
    [
      'unknown profile with a share',
      pool('    backend: { kind: simulated, profile: h100-lama-8b+mig-2g }'),
      's.yaml:5: pools[0].backend.profile is "h100-lama-8b+mig-2g", but there is no such GPU profile. Did you mean "h100-llama-8b+mig-2g"?',
    ],
    [
      'unknown part of a GPU',
      pool('    backend: { kind: simulated, profile: h100-llama-8b+mig-9g }'),
      's.yaml:5: pools[0].backend.profile is "h100-llama-8b+mig-9g", but there is no such part of a GPU. Known: +mig-1g, +mig-2g, +mig-3g, +mig-4g, +mig-7g, or +shared-2 and more.',
    ],
    [
      'part of several GPUs',
      pool('    backend: { kind: simulated, profile: h100-llama-70b-tp4+mig-1g }'),
      's.yaml:5: pools[0].backend.profile is "h100-llama-70b-tp4+mig-1g", but h100-llama-70b-tp4 spans several GPUs, which have no slices. Remove "+mig-1g".',
    ],
    [
      'part of a GPU that is too small',
      pool('    backend: { kind: simulated, profiles: [h100-llama-8b, a100-llama-8b+mig-1g] }'),
      's.yaml:5: pools[0].backend.profiles[1] is "a100-llama-8b+mig-1g", whose memory is full with the weights: none is left for keys and values. Choose a larger part or GPU.',
    ],
    ...(
      [
        [
          'unknown release',
          'rollout: { stable: "3" }',
          'rollout.stable is "3", but there is no such release. Known: 1, 2',
        ],
        [
          'release that no pool serves',
          'rollout: { stable: "1", canary: "2" }',
          'rollout.canary is "2", which no pool serves. Give a pool `release: 2`',
        ],
        [
          'a canary that is stable',
          'rollout: { stable: "1", canary: "1" }',
          'rollout.canary is the stable release too',
        ],
        [
          'falling steps',
          'rollout: { stable: "1", steps: [5, 5] }',
          'rollout.steps[1] is not above the step before it',
        ],
        [
          'a flag for nobody',
          'rollout: { stable: "1", rules: [{ release: "1" }] }',
          'rollout.rules[0] names nobody. Give it a tenant, a key or a header',
        ],
      ] as const
    ).map(([what, rollout, line]): [string, string, string] => [
      what,
      `${TENANTS}\nmodels: [{ name: m, releases: [{ version: "1" }, { version: "2" }], ${rollout} }]\npools: [{ model: m, backend: { kind: simulated } }]`,
      `s.yaml:2: models[0].${line}.`,
    ]),
    [
      'unknown SLO',
      'tenants: [{ id: a, slo: stedy }]',
      's.yaml:1: tenants[0].slo is "stedy", but there is no such SLO. Did you mean "steady"?',
    ],
    [
      'missing id',
      'tenants: [{ weight: 1 }]',
      's.yaml:1: tenants[0] lacks "id". Add it (tenant name in metrics, logs and usage records).',
    ],
    [
      'text that is a number',
      'tenants: [{ id: 12 }]',
      's.yaml:1: tenants[0].id is 12. Set it to text; put it in quotes if it looks like a number.',
    ],
    ['not a configuration', '- a', 's.yaml:1: not a configuration. Write it as "name: value" lines.'],
    [
      'the same key twice',
      `seed: 1\nseed: 2\n${TENANTS}`,
      's.yaml:2: not valid YAML: Map keys must be unique. Fix the line, then try again.',
    ],
  ])('%s', (_, yaml, line) => expect(problemsOf(yaml)).toEqual([line]))

  it('for every problem at once', () => expect(problemsOf(`seed: x\nserver: { port: -1 }\n${TENANTS}`)).toHaveLength(2))

  it('naming the variable or the flag that it came by', () => {
    expect(problemsOf(undefined, { MAX_QUEUE_SIZE: 'ten' })).toEqual([
      'MAX_QUEUE_SIZE (queue.requestsMax) is "ten". Set it to a whole number from 1 up to 1000000000.',
    ])
    expect(() => load(undefined, {}, { 'server.port': 'x' })).toThrow(/^--port \(server\.port\) is "x"\./)
  })

  it('for a misspelt variable, but not for those that Kubernetes sets', () => {
    expect(problemsOf(undefined, { SPILLWAY_SEDE: '1' })).toEqual([
      'SPILLWAY_SEDE (environment) is not a setting. Did you mean SPILLWAY_SEED?',
    ])
    expect(problemsOf(undefined, { SPILLWAY_SERVICE_HOST: '10.0.0.1', SPILLWAY_PORT: 'tcp://10.0.0.1:80' })).toEqual([])
  })

  it('for a file that cannot be read', () => {
    expect(() => loadConfig({ path: 'no/such.yaml', env: {} })).toThrow(/^no\/such\.yaml: There is no such file\./)
    expect(() => loadConfig({ env: { SPILLWAY_CONFIG: '.' } })).toThrow(/This is a folder/)
  })
})

describe('keys', () => {
  it.each([
    ['as list', 'tenants: [{ id: a, keys: [sk-secret] }]'],
    ['as hash', 'tenants: [{ id: a, keys: [{ id: k, hash: sk-secret }] }]'],
    ['as key', 'tenants: [{ id: a, keys: [{ id: k, key: sk-secret }] }]'],
  ])('are refused in plain, %s, without repeating them', (_, yaml) => {
    const [problem, ...others] = problemsOf(yaml)
    expect(problem).toMatch(/spillway keys create/)
    expect(problem).not.toContain('sk-secret')
    expect(others).toEqual([])
  })
  it('of the demo open loopback only', () => {
    for (const HOST of ['127.0.0.1', 'localhost', '::1', '127.9.9.9'])
      expect(demoBindProblem(load(undefined, { HOST }))).toBeUndefined()
    for (const HOST of ['0.0.0.0', '::', '10.0.0.1', 'example.org', '127.0.0.1.evil.org']) {
      expect(demoBindProblem(load(undefined, { HOST }))).toContain(HOST)
    }
    expect(demoBindProblem(load(TENANTS, { HOST: '0.0.0.0' }))).toBeUndefined()
  })
  it('and other secrets are not printed', () => {
    const yaml = `${TENANTS}
models: [{ name: m }]
pools:
  - model: m
    backend: { kind: http-openai, url: "http://me:url-secret@a/v1", apiKeyEnv: UP, headers: { x-key: header-secret } }`
    const config = load(yaml, { UP: 'upstream-secret' })
    expect(config.pools[0]?.backend).toMatchObject({ apiKey: 'upstream-secret' })
    const printed = JSON.stringify(redacted(config))
    for (const secret of ['upstream-secret', 'header-secret', 'url-secret', HASH]) expect(printed).not.toContain(secret)
    expect(printed).toContain('x-key')
  })
})

describe('explain', () => {
  it('finds words whenever the validator says no, and only then', () => {
    const good = load(undefined)
    const spots = fc.constantFrom(
      'server',
      'server.port',
      'seed',
      'models.0.name',
      'models.0.aliases',
      'pools.0.backend',
      'pools.0.replicas',
      'pools.0.backend.kind',
      'pools.0.limit',
      'tenants.0.bands',
      'tenants.0.keys.0',
      'tenants.0.keys.0.hash',
      'tenants.0.weight',
      'slos.0',
      'logging.level',
      'queue.unknown',
      'admission.safetyMargin',
    )
    fc.assert(
      fc.property(spots, fc.jsonValue({ maxDepth: 2 }), (spot, value) => {
        const { file: _, ...tree } = structuredClone(good) as Record<string, unknown>
        const path = spot.split('.')
        const parent = path.slice(0, -1).reduce((at, key) => at[key] as Record<string, unknown>, tree)
        parent[path.at(-1) as string] = value
        const filled = fillDefaults(ConfigSchema, tree)
        expect(explain(asNode(ConfigSchema), filled).length === 0).toBe(isValid(ConfigSchema, filled))
      }),
      { numRuns: 500 },
    )
  })
})
