import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { injectionRule, screeningTerms } from '../../../test/support/scripted-screener.ts'
import type { GuardSaying, ScreenFailure, ScreeningTerms } from '../../domain/screening.ts'
import { decideVerdict, greyScreens, isGuardAwaited } from './decide-verdict.ts'

const DEFAULTS = { injection: 0.7, 'passage-injection': 0.6, toxicity: 0.8 }
const GUARD = { model: 'guard', route: 'chat', greyFrom: 0.3, greyTo: 0.9, timeoutUs: 1 } as const

const guarded = (onFailure: ScreenFailure, action: 'observe' | 'flag' | 'block' = 'block'): ScreeningTerms =>
  screeningTerms({ rules: [injectionRule(), injectionRule({ screen: 'guard', onFailure, action })], guard: GUARD })

const SAFE: GuardSaying = { kind: 'safe' }
const UNSAFE: GuardSaying = { kind: 'unsafe', categories: ['s1', 's9'] }
const FAILED: GuardSaying = { kind: 'failed' }

describe('an embedded screen', () => {
  it.each([
    ['below its threshold', 0.69, 'block', 'passed', []],
    ['at its threshold', 0.7, 'block', 'blocked', ['block']],
    ['that flags', 0.99, 'flag', 'passed', ['flag']],
    ['that observes', 0.99, 'observe', 'passed', ['observe']],
  ] as const)('%s', (_what, injection, action, kind, actions) => {
    const terms = screeningTerms({ rules: [injectionRule({ action })] })
    const verdict = decideVerdict(terms, { injection }, DEFAULTS)
    expect(verdict.kind).toBe(kind)
    expect(verdict.findings.map((finding) => finding.action)).toEqual(actions)
  })

  it('has the threshold that its tenant sets', () => {
    const terms = screeningTerms({ rules: [injectionRule({ scoreMin: 0.2 })] })
    expect(decideVerdict(terms, { injection: 0.25 }, DEFAULTS)).toMatchObject({
      kind: 'blocked',
      findings: [{ screen: 'injection', category: 'injection', score: 0.25 }],
      because: 'injection injection 0.25',
    })
  })

  it.each([
    ['open', 'partial'],
    ['degrade', 'partial'],
    ['closed', 'blocked'],
  ] as const)('that cannot say, with %s, is %s', (onFailure, kind) => {
    const terms = screeningTerms({ rules: [injectionRule({ onFailure })] })
    expect(decideVerdict(terms, {}, DEFAULTS)).toMatchObject({ kind, skipped: ['injection'] })
  })

  it('does not look at what comes out', () => {
    const terms = screeningTerms({ rules: [injectionRule({ screen: 'toxicity', direction: 'output' })] })
    expect(decideVerdict(terms, { toxicity: 1 }, DEFAULTS).kind).toBe('passed')
  })
})

describe('the grey zone', () => {
  it.each([
    [0.29, []],
    [0.3, ['injection']],
    [0.9, ['injection']],
    [0.91, []],
  ])('of a score of %f', (injection, screens) => {
    expect(greyScreens(guarded('open'), { injection })).toEqual(screens)
  })

  it('has no upper end for a screen without a rule, and is nowhere without a guard', () => {
    expect(greyScreens(guarded('open'), { toxicity: 0.99 })).toEqual(['toxicity'])
    expect(greyScreens(screeningTerms(), { injection: 0.5 })).toEqual([])
    expect(greyScreens({ ...screeningTerms(), guard: GUARD }, { injection: 0.5 })).toEqual([])
  })

  it.each([
    ['safe', 0.5, SAFE, 'open', 'passed'],
    ['safe, above the threshold', 0.8, SAFE, 'open', 'passed'],
    ['unsafe, below the threshold', 0.5, UNSAFE, 'open', 'blocked'],
    ['unsafe', 0.8, UNSAFE, 'open', 'blocked'],
    ['nothing', 0.5, FAILED, 'open', 'partial'],
    ['nothing, above the threshold', 0.8, FAILED, 'open', 'partial'],
    ['nothing', 0.5, FAILED, 'degrade', 'partial'],
    ['nothing, above the threshold', 0.8, FAILED, 'degrade', 'blocked'],
    ['nothing', 0.5, FAILED, 'closed', 'blocked'],
  ] as const)('is decided by a guard that says %s (%f)', (_what, injection, guard, onFailure, kind) => {
    expect(decideVerdict(guarded(onFailure), { injection }, DEFAULTS, guard).kind).toBe(kind)
  })

  it('leaves a sure score to its screen', () => {
    expect(decideVerdict(guarded('open'), { injection: 0.95 }, DEFAULTS, SAFE).kind).toBe('blocked')
  })

  it('tells the guard’s categories, four at most', () => {
    const categories = ['s1', 's2', 's3', 's4', 's5']
    const { findings } = decideVerdict(guarded('open'), { injection: 0.5 }, DEFAULTS, { kind: 'unsafe', categories })
    expect(findings.map(({ screen, category }) => `${screen} ${category}`)).toEqual(
      ['s1', 's2', 's3', 's4'].map((category) => `guard ${category}`),
    )
  })

  it('is waited for unless the guard only observes', () => {
    expect(isGuardAwaited(guarded('open', 'observe'))).toBe(false)
    expect(isGuardAwaited(guarded('open', 'flag'))).toBe(true)
    expect(isGuardAwaited(screeningTerms())).toBe(false)
  })
})

it('blocks exactly when a finding blocks, and is partial only when a screen could not say', () => {
  const score = fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined })
  const failure = fc.constantFrom<ScreenFailure>('open', 'closed', 'degrade')
  const saying = fc.constantFrom(undefined, SAFE, UNSAFE, FAILED)
  fc.assert(
    fc.property(score, score, failure, saying, (injection, toxicity, onFailure, guard) => {
      const scores = { ...(injection !== undefined && { injection }), ...(toxicity !== undefined && { toxicity }) }
      const verdict = decideVerdict(guarded(onFailure), scores, DEFAULTS, guard)
      const blocks = verdict.findings.some(({ action }) => action === 'block')
      expect(verdict.kind === 'blocked').toBe(blocks)
      if (verdict.kind === 'passed') expect(verdict.skipped).toEqual([])
      if (verdict.kind === 'partial') expect(verdict.skipped.length).toBeGreaterThan(0)
      if (verdict.skipped.includes('guard') && onFailure === 'closed') expect(verdict.kind).toBe('blocked')
    }),
  )
})
