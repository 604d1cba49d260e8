import { describe, expect, it } from 'vitest'
import { buildConfig } from './load.ts'
import type { ScreeningConfig } from './schema.ts'
import { toTenants } from './to-domain.ts'
import { toScreening } from './to-screening.ts'

const rulesOf = (platform: ScreeningConfig, own?: ScreeningConfig) =>
  (toScreening(platform, own)?.rules ?? []).map(({ screen, direction, action }) => `${screen} ${direction} ${action}`)

const load = (tree: Record<string, unknown>) =>
  buildConfig(
    {
      path: 'test.yaml',
      tree: { tenants: [{ id: 'a', keys: [] }], ...tree },
      lineOf: () => undefined,
    },
    {},
  )

const problemsOf = (tree: Record<string, unknown>): readonly string[] => {
  try {
    load(tree)
    return []
  } catch (error) {
    return (error as { problems: string[] }).problems
  }
}

describe('terms of screening', () => {
  it('are absent unless a screen is named', () => {
    expect(toScreening({})).toBeUndefined()
    expect(toScreening({ pii: 'off', hold: 'whole', reversible: true })).toBeUndefined()
    expect(load({}).tenants[0]).not.toHaveProperty('screening')
    expect(toTenants(load({}))[0]).not.toHaveProperty('screening')
  })

  it('hold in both directions, but for screens of what goes in', () => {
    expect(rulesOf({ pii: 'redact', injection: 'flag', passageInjection: 'block' })).toEqual([
      'pii input redact',
      'pii output redact',
      'injection input flag',
      'passage-injection input block',
    ])
  })

  it('take the most exact word: the tenant before the platform, a direction before both', () => {
    const platform: ScreeningConfig = { pii: 'redact', output: { pii: 'flag' }, secrets: 'block' }
    expect(rulesOf(platform)).toEqual([
      'pii input redact',
      'pii output flag',
      'secrets input block',
      'secrets output block',
    ])
    expect(rulesOf(platform, { pii: 'observe' })).toEqual([
      'pii input observe',
      'pii output observe',
      'secrets input block',
      'secrets output block',
    ])
    expect(rulesOf(platform, { input: { pii: 'off' }, secrets: 'off' })).toEqual(['pii output flag'])
  })

  it('fail closed where they block, and open elsewhere, unless told', () => {
    const terms = toScreening({ injection: 'block', toxicity: 'flag', guard: 'block', onFailure: { guard: 'degrade' } })
    expect(terms?.rules.map(({ screen, onFailure }) => [screen, onFailure])).toEqual([
      ['injection', 'closed'],
      ['toxicity', 'open'],
      ['toxicity', 'open'],
      ['guard', 'degrade'],
    ])
  })

  it('have the rest of the policy, with a version that changes with it', () => {
    const platform: ScreeningConfig = {
      pii: 'redact',
      allowed: ['help@shop.example'],
      ownPatterns: [{ name: 'order', expression: 'A-\\d+' }],
    }
    const own: ScreeningConfig = {
      hold: 'sentences:16',
      allowed: ['x'],
      ownPatterns: [{ name: 'order', expression: 'B-\\d+' }],
      scoreMin: { injection: 0.7 },
      injection: 'flag',
      guardModel: { model: 'm', route: 'chat', greyFrom: 0.2, greyTo: 0.8, timeoutMs: 50 },
    }
    const terms = toScreening(platform, own)
    expect(terms).toMatchObject({
      hold: { kind: 'sentences', tokensMax: 16 },
      join: 'gate',
      isReversible: false,
      binary: 'pass',
      allowed: ['help@shop.example', 'x'],
      patterns: [{ name: 'order', expression: 'B-\\d+' }],
      guard: { model: 'm', timeoutUs: 50_000 },
    })
    expect(terms?.rules.find(({ screen }) => screen === 'injection')?.scoreMin).toBe(0.7)
    expect(terms?.version).toMatch(/^[0-9a-f]{12}$/)
    expect(toScreening(platform, own)?.version).toBe(terms?.version)
    expect(toScreening(platform, { ...own, reversible: true })?.version).not.toBe(terms?.version)
  })

  it('of tenants that say nothing are one object', () => {
    const tenants = toTenants(
      load({
        screening: { pii: 'redact' },
        tenants: [{ id: 'a' }, { id: 'b' }, { id: 'c', screening: { pii: 'flag' } }],
      }),
    )
    expect(tenants[0]?.screening).toBe(tenants[1]?.screening)
    expect(tenants[2]?.screening?.rules[0]?.action).toBe('flag')
  })
})

describe('settings of screening', () => {
  it.each<readonly [string, Record<string, unknown>, string]>([
    ['a judge that should redact', { injection: 'redact' }, 'screening.injection is "redact". Set it to off'],
    [
      'an output screen of what goes in',
      { output: { injection: 'flag' } },
      'screening.output.injection is not a setting',
    ],
    ['a guard without a model', { guard: 'block' }, 'screening.guard is on, but there is no model to ask'],
    ['a guard model that there is not', { guardModel: { model: 'nobody' } }, 'which is no chat model'],
    ['a grey zone of nothing', { guardModel: { model: 'x', greyFrom: 0.9, greyTo: 0.3 } }, 'would never be asked'],
    ['patterns that are not there', { patterns: 'redact' }, 'there are no patterns to look for'],
    ['a pattern that is none', { ownPatterns: [{ name: 'a', expression: '(' }] }, 'cannot be used: a "(" has no ")"'],
    ['a pattern that looks ahead', { ownPatterns: [{ name: 'a', expression: 'a(?=b)' }] }, 'cannot be used: "(?"'],
    ['a pattern that refers back', { ownPatterns: [{ name: 'a', expression: '(a)\\1' }] }, 'references back'],
    ['a pattern of nothing', { ownPatterns: [{ name: 'a', expression: 'a*' }] }, 'matches nothing at all'],
    ['a hold that there is not', { hold: 'sentences:0' }, 'screening.hold is "sentences:0"'],
  ])('refuse %s', (_, screening, text) => {
    expect(problemsOf({ screening }).join('\n')).toContain(text)
  })

  it('are checked for tenants with what they have from the platform', () => {
    const guardModel = { model: load({}).models[0]?.name }
    const own = (screening: object) => [{ id: 'a', screening }]
    expect(problemsOf({ screening: { guardModel }, tenants: own({ guard: 'flag' }) })).toEqual([])
    expect(problemsOf({ tenants: own({ guard: 'flag' }) })).toEqual([
      expect.stringContaining('tenants[0].screening.guard'),
    ])
    const ownPatterns = [{ name: 'order', expression: 'A-\\d+' }]
    expect(problemsOf({ tenants: own({ ownPatterns }) })).toEqual([expect.stringContaining('the screen is off')])
    expect(problemsOf({ screening: { patterns: 'flag', ownPatterns } })).toEqual([])
  })

  it('can be given in the environment', () => {
    const tree = { path: 'test.yaml', tree: { tenants: [{ id: 'a' }] }, lineOf: () => undefined }
    const { screening } = buildConfig(tree, {
      SPILLWAY_SCREENING_PII: 'redact',
      SPILLWAY_SCREENING_OUTPUT_SECRETS: 'flag',
    })
    expect(screening).toMatchObject({ pii: 'redact', output: { secrets: 'flag' } })
  })
})
