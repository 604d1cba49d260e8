import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ActivePromises, activeBeside } from './active-tenants.ts'
import { TenantBacklog } from './candidate.ts'

const PROMISES = [100, 300, 1_000]

const anyStep = fc.record({
  tenant: fc.nat(4),
  act: fc.constantFrom('come', 'end', 'dismiss', 'ask' as const),
  laterUs: fc.nat(400),
})

describe('the tightest promise of others', () => {
  it('is what a search among all tenants finds, whatever comes and ends', () => {
    fc.assert(
      fc.property(
        fc.array(anyStep, { maxLength: 60 }),
        fc.array(fc.nat(2), { minLength: 5, maxLength: 5 }),
        (steps, promised) => {
          const promises = new ActivePromises()
          const backlogs = promised.map((nth, i) => {
            const backlog = new TenantBacklog(`t${i}`, 'org', 1)
            backlog.join(promises.groupOf(PROMISES[nth] as number))
            return backlog
          })
          let now = 0
          for (const { tenant, act, laterUs } of steps) {
            now += laterUs
            const own = backlogs[tenant] as TenantBacklog
            if (act === 'come') own.countForeground(now, 1)
            else if (act === 'end' && own.foregroundCount > 0) own.countForeground(now, -1)
            else if (act === 'dismiss' && own.foregroundCount > 0) own.moveForeground(-1)
            const others = activeBeside(now, own, backlogs).slice(1)
            const searched = Math.min(Number.POSITIVE_INFINITY, ...others.map(({ promiseUs }) => promiseUs))
            expect(promises.tightestBeside(now, own)).toBe(searched)
          }
        },
      ),
    )
  })

  it('follows a tenant whose promise changes while it is at work', () => {
    const promises = new ActivePromises()
    const [asks, works] = [new TenantBacklog('asks', 'org', 1), new TenantBacklog('works', 'org', 1)]
    asks.join(promises.groupOf(100))
    works.join(promises.groupOf(100))
    works.countForeground(0, 1)
    works.join(promises.groupOf(5_000))
    expect(promises.tightestBeside(101, asks)).toBe(5_000)
    works.countForeground(200, -1)
    expect(promises.tightestBeside(5_200, asks)).toBe(5_000)
    expect(promises.tightestBeside(5_201, asks)).toBe(Number.POSITIVE_INFINITY)
  })

  it('keeps no group that nobody is in', () => {
    const promises = new ActivePromises()
    const first = promises.groupOf(100)
    promises.forgetUnused([])
    expect(promises.groupOf(100)).not.toBe(first)
  })
})
