import { describe, expect, it } from 'vitest'
import { ACME, makeRequest } from '../../test/support/requests.ts'
import { finished, lost } from '../../test/support/scripted-backend.ts'
import { MODEL } from '../../test/support/start-platform.ts'
import { VirtualWorld } from '../../test/support/virtual-world.ts'
import type { BudgetMarked } from '../domain/platform-entry.ts'
import type { SpendLimit, Tenant } from '../domain/tenant.ts'
import { habitOf } from '../policy/planning/output-length.ts'

const DOLLAR = 1_000_000_000
const budgetOf = (limit: Partial<SpendLimit>): SpendLimit => ({ period: 'month', isHard: true, marks: [], ...limit })
const tenantWith = (...budgets: SpendLimit[]): Tenant => ({ ...ACME, allowance: { budgets } })

/** A dollar for each request, whatever its size. */
const tree = { prices: [{ version: 'v1', models: [{ model: MODEL, requestUsd: 1 }] }] }
const crowd = { tree, queueMax: 2_000, concurrencyMax: 64 }

const heldAndUsed = (world: VirtualWorld, tenant: Tenant): unknown => {
  const key = { ...makeRequest().key }
  const view = world.platform.budgetsOf({ tenant, key }).find(({ scope }) => scope.noun === 'tenant')?.view
  return view?.quotas.map(({ used, held }) => ({ used, held }))
}

describe('a hard budget of money', () => {
  it('lets exactly ten of a thousand in that come at once, and the others take nothing', async () => {
    const { world } = await VirtualWorld.scripted([finished(4)], crowd)
    const tenant = tenantWith(budgetOf({ nanoMax: 10 * DOLLAR }))
    const all = Array.from({ length: 1_000 }, () => world.serve({ tenant }))
    await world.run()
    const settled = await Promise.all(all.map(({ done }) => done))
    expect(settled.filter(({ outcome }) => outcome === 'completed')).toHaveLength(10)
    const refused = settled.filter(({ refusal }) => refusal?.code === 'budget-exhausted')
    expect(refused).toHaveLength(990)
    expect(refused.every(({ usage }) => usage.promptTokens === 0)).toBe(true)
    expect(heldAndUsed(world, tenant)).toEqual([
      { used: { tokens: 240, nano: 10 * DOLLAR }, held: { tokens: 0, nano: 0 } },
    ])
    expect(world.unrest()).toEqual([])
  })

  it('is there again in the next month, with nothing left of the last', async () => {
    const { world } = await VirtualWorld.scripted([finished(4)], crowd)
    const tenant = tenantWith(budgetOf({ nanoMax: DOLLAR }))
    const first = world.serve({ tenant })
    // A hold of a running answer may come back soon; what was used comes back with the month.
    const meanwhile = world.serve({ tenant })
    await world.run()
    expect(meanwhile.settled?.refusal?.retryAfterUs).toBeLessThanOrEqual(1_000_000)
    const second = world.serve({ tenant })
    await world.run()
    expect([first.settled?.outcome, second.settled?.outcome]).toEqual(['completed', 'rejected'])
    const outcomes: unknown[] = []
    const retryAfterUs = second.settled?.refusal?.retryAfterUs ?? 0
    for (const delayUs of [retryAfterUs - 1, retryAfterUs])
      world.after(delayUs, () => void world.serve({ tenant }).done.then(({ outcome }) => outcomes.push(outcome)))
    await world.run()
    expect(outcomes).toEqual(['rejected', 'completed'])
    expect(world.unrest()).toEqual([])
  })

  it('pays nothing for an answer that was lost', async () => {
    const { world } = await VirtualWorld.scripted([lost(2)], crowd)
    const tenant = tenantWith(budgetOf({ nanoMax: DOLLAR }))
    const { done } = world.serve({ tenant })
    await world.run()
    expect((await done).outcome).toBe('failed')
    expect(heldAndUsed(world, tenant)).toEqual([{ used: { tokens: 0, nano: 0 }, held: { tokens: 0, nano: 0 } }])
  })
})

describe('budgets of a model and of end users', () => {
  it('bound each by itself', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)], crowd)
    const tenant = tenantWith(
      budgetOf({ nanoMax: 3 * DOLLAR, model: MODEL }),
      budgetOf({ nanoMax: 2 * DOLLAR, period: { hours: 24 }, isPerUser: true }),
      budgetOf({ nanoMax: 1, model: 'other' }),
    )
    const serve = (endUser: string) => world.serve({ tenant, endUser })
    const all = [serve('ann'), serve('ann'), serve('ann'), serve('bob'), serve('bob')]
    await world.run()
    expect(all.map(({ settled }) => settled?.refusal?.detail?.['scope'])).toEqual([
      undefined,
      undefined,
      'user',
      undefined,
      'model',
    ])
  })
})

describe('an answer that runs past what is held', () => {
  const observed = async (deltas: number): Promise<VirtualWorld> => {
    const { world } = await VirtualWorld.scripted([finished(deltas)], { concurrencyMax: 4 })
    const habit = habitOf(makeRequest())
    for (let i = 0; i < 50; i++) world.platform.policies.outputs.observe(habit, { tokens: 5, isCut: false })
    return world
  }

  it('draws on, and ends with one delta too many where a hard budget is empty', async () => {
    const world = await observed(60)
    const tenant = tenantWith(budgetOf({ tokensMax: 60 }))
    const { done, sink } = world.serve({ tenant })
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed', because: 'budget-empty', usage: { outputTokens: 41 } })
    expect(sink).toMatchObject({ tokens: 41, isWellFormed: true })
    expect(sink.calls.at(-1)).toBe('finish')
    expect(heldAndUsed(world, tenant)).toEqual([{ used: { tokens: 61, nano: 0 }, held: { tokens: 0, nano: 0 } }])
    expect(world.unrest()).toEqual([])
  })

  it('goes on where the budget is soft, and in observe-only mode', async () => {
    const world = await observed(60)
    const soft = world.serve({ tenant: tenantWith(budgetOf({ tokensMax: 60, isHard: false })) })
    await world.run()
    expect((await soft.done).usage.outputTokens).toBe(60)
    world.platform.policies.mode = 'observe'
    const observing = world.serve({ tenant: { ...tenantWith(budgetOf({ tokensMax: 60 })), id: 'watched' } })
    await world.run()
    expect((await observing.done).usage.outputTokens).toBe(60)
  })
})

describe('marks', () => {
  it('are journalled once for each period', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)], crowd)
    const tenant = tenantWith(budgetOf({ nanoMax: 4 * DOLLAR, marks: [0.5, 1], isHard: false }))
    for (let i = 0; i < 6; i++) {
      world.serve({ tenant })
      await world.run()
    }
    const marked = world.entries.filter((entry): entry is BudgetMarked => entry.kind === 'budget-marked')
    expect(marked.map(({ mark, usedNano, scopeId }) => [mark, usedNano / DOLLAR, scopeId])).toEqual([
      [0.5, 2, 'acme'],
      [1, 4, 'acme'],
    ])
    expect(new Set(marked.map(({ id }) => id)).size).toBe(2)
  })
})
