import { describe, expect, it } from 'vitest'
import { testTree } from '../../test/support/start-platform.ts'
import { buildConfig } from './load.ts'
import { toTenants } from './to-domain.ts'

const HASH = `sha256:${'0'.repeat(64)}`

const load = (tenant: object, orgs: readonly object[] = []) => {
  const tree = testTree({ tenants: [{ id: 'a', ...tenant }], orgs })
  return buildConfig({ path: 's.yaml', tree, lineOf: () => undefined }, {})
}

describe('budgets of the configuration', () => {
  it.each([
    ['no amount', { budgets: [{ period: 'day' }] }, 'budgets[0] has no amount. Set usd, tokens or both'],
    ['two periods', { budgets: [{ period: 'day', hours: 3, usd: 1 }] }, 'budgets[0] has a period and hours'],
    ['an unknown model', { budgets: [{ usd: 1, model: 'nope' }] }, 'model is "nope", but there is no such model'],
    ['a model and users', { budgets: [{ usd: 1, model: 'sim', perUser: true }] }, 'is for one model and per user'],
    ['twice the same', { budgets: [{ usd: 1 }, { period: 'month', tokens: 5 }] }, 'is for the same as one before it'],
  ])('say what is wrong: %s', (_what, allowance, says) => {
    expect(() => load({ allowance })).toThrow(says)
  })

  it('of keys are for all that the key uses', () => {
    const keys = [{ id: 'k', hash: HASH, allowance: { budgets: [{ usd: 1, perUser: true }] } }]
    expect(() => load({ keys })).toThrow('is for a model or per user, which keys do not have')
  })

  it('become whole nano-dollars, with rising marks, for tenants and their orgs', () => {
    const budgets = [
      { usd: 0.1, marks: [1, 0.5] },
      { hours: 24, tokens: 7, kind: 'soft', perUser: true },
    ]
    const [tenant] = toTenants(load({ allowance: { budgets } }, [{ id: 'a', allowance: { budgets: [{ usd: 2 }] } }]))
    expect(tenant?.allowance.budgets).toEqual([
      { period: 'month', nanoMax: 100_000_000, isHard: true, marks: [0.5, 1] },
      { period: { hours: 24 }, tokensMax: 7, isHard: false, marks: [0.5, 0.8, 1], isPerUser: true },
    ])
    expect(tenant?.orgAllowance?.budgets).toMatchObject([{ period: 'month', nanoMax: 2_000_000_000, isHard: true }])
    expect(tenant?.orgWeight).toBeUndefined()
  })
})
