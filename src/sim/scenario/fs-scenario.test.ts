import { expect, it } from 'vitest'
import { ConfigError } from '../../config/config-error.ts'
import { parseConfigFile } from '../../config/fs-config-file.ts'
import { checkScenario, loadScenario, shippedScenarios } from './fs-scenario.ts'
import { callersOf, configOf } from './scenario-config.ts'

const GOOD = `name: small
about: A test.
durationS: 10
platform:
  models: [{ name: chat }]
  pools: [{ model: chat, backend: { kind: simulated, profile: h100-llama-8b } }]
  tenants: [{ id: acme }]
groups:
  - { name: many, count: 3, like: { weight: 2 } }
workload:
  - tenant: acme
    model: chat
    arrivals: { kind: poisson, ratePerS: 1 }
    prompt: { kind: fixed, tokens: 10 }
    output: { kind: quantiles, points: [[0, 1], [1, 9]] }
  - tenant: many
    model: chat
    arrivals: { kind: poisson, ratePerS: 1 }
    prompt: { kind: fixed, tokens: 10 }
    output: { kind: fixed, tokens: 10 }
`

function problemsOf(text: string): readonly string[] {
  try {
    const file = parseConfigFile('a.yaml', text)
    checkScenario(file, file.tree)
  } catch (error) {
    if (error instanceof ConfigError) return error.problems
    throw error
  }
  return []
}

it('makes tenants of a group', () => {
  const file = parseConfigFile('a.yaml', GOOD)
  const { config, groupOf } = configOf(checkScenario(file, file.tree), 1)
  const callers = callersOf(config, groupOf)
  expect(callers.map(({ tenant }) => tenant.id)).toEqual(['acme', 'many-1', 'many-2', 'many-3'])
  expect(callers[1]).toMatchObject({ group: 'many', tenant: { weight: 2 } })
})

it.each([
  ['a missing part', ['durationS: 10\n', ''], /^a\.yaml: the scenario lacks "durationS"/],
  ['a misspelt word', ['ratePerS: 1 }\n    prompt', 'rate: 1 }\n    prompt'], /^a\.yaml:13: workload\[0\]\.arrivals/],
  ['a wrong kind', ['kind: fixed, tokens: 10 }', 'kind: fixd, tokens: 10 }'], /^a\.yaml:14: .*Did you mean "fixed"/],
  ['an unknown tenant', ['- tenant: acme', '- tenant: acne'], /^a\.yaml:11: workload\[0\]\.tenant is "acne"/],
  ['an unknown model', ['    model: chat\n    arr', '    model: chap\n    arr'], /^a\.yaml:12: workload\[0\]\.model/],
  ['points that do not ascend', ['[1, 9]]', '[0, 9]]'], /^a\.yaml:15: .*points\[1\] does not ascend/],
  ['a wrong platform setting', ['profile: h100-llama-8b', 'profil: x'], /^a\.yaml:6: .*profil/],
  [
    'a fault at nobody',
    ['workload:', 'faults: [{ kind: pool-loss, target: chad, atS: 1, forS: 1 }]\nworkload:'],
    /^a\.yaml:10: faults\[0\]\.target is "chad", but no replica, pool or release is called so\. Known: chat-local, chat-local-0/,
  ],
  [
    'a region that no pool is in',
    ['workload:', 'faults: [{ kind: region-loss, target: mars, atS: 1, forS: 1 }]\nworkload:'],
    /^a\.yaml:10: faults\[0\]\.target is "mars", but no region is called so\. Known: local/,
  ],
  [
    'a part that ends before it begins',
    ['workload:', 'parts: { late: { fromS: 5, toS: 4 } }\nworkload:'],
    /^a\.yaml:10: parts\.late\.toS is 4, and it begins at 5/,
  ],
  [
    'an expectation that cannot fail',
    ['workload:', 'expect: [{ what: all is well, path: requests.shed }]\nworkload:'],
    /^a\.yaml:10: expect\[0\] has no bound/,
  ],
  [
    'an expectation about a variant that there is not',
    ['workload:', 'expect: [{ what: x, path: requests.shed, atMost: 1, of: fifo }]\nworkload:'],
    /^a\.yaml:10: expect\[0\]\.of is "fifo", but no variant is called so\. There are none/,
  ],
  [
    'phases of closed sessions',
    [
      'arrivals: { kind: poisson, ratePerS: 1 }\n    prompt',
      'arrivals: { kind: closed, sessions: 2, thinkS: 1 }\n    phases: [{ fromS: 0, toS: 1, factor: 2 }]\n    prompt',
    ],
    /^a\.yaml:14: workload\[0\]\.phases change a rate, but closed sessions have none/,
  ],
  ['YAML that is none', ['name: small', 'name: [small'], /^a\.yaml:\d+: not valid YAML/],
])('%s is told with its line', (_, [from, to], message) => {
  expect(problemsOf(GOOD.replace(from!, to!))[0]).toMatch(message)
})

it('says which scenario there is not', () => {
  expect(() => loadScenario('no-such')).toThrow(/no scenario is called/)
  expect(() => loadScenario('no/such.yaml')).toThrow(/no\/such\.yaml: there is no such file/)
})

it('every shipped scenario is good and is called as its file is', () => {
  for (const name of shippedScenarios()) expect(loadScenario(name).scenario.name).toBe(name)
})
