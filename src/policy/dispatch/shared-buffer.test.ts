import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeTenant } from '../../../test/support/demand.ts'
import { BANDS } from '../../domain/tenant.ts'
import { weightAmongAll } from '../fairness/tree-share.ts'
import { PoolLane, TenantBacklog } from './candidate.ts'
import { SharedBuffer } from './shared-buffer.ts'
import { WeightScale } from './weight-scale.ts'

/** A buffer with one lane for each tenant, in which a ticket is a number. */
class Buffered {
  readonly orgWeights = new Map<string, number>()
  readonly buffer: SharedBuffer
  readonly lanes = new Map<string, { lane: PoolLane; orgId: string; weight: number; count: number }>()

  constructor(queueRequestsMax: number) {
    this.buffer = new SharedBuffer(queueRequestsMax, this.orgWeights)
  }

  add(tenantId: string, orgId: string, weight = 1): void {
    const name = { poolId: 'p', orgId, tenantId, keyId: tenantId, keyWeight: 1, tenantWeight: weight }
    const lane = new PoolLane(
      { ...name, band: 'standard' },
      new TenantBacklog(tenantId, orgId, weight),
      new WeightScale(),
    )
    this.buffer.attach(lane)
    this.lanes.set(tenantId, { lane, orgId, weight, count: 0 })
  }

  join(tenantId: string, count = 1): void {
    const one = this.lanes.get(tenantId)!
    for (let i = 0; i < count; i++) {
      one.count++
      // The buffer reads nothing of a lane but how many it holds.
      Object.defineProperty(one.lane, 'count', { value: one.count, configurable: true })
      this.buffer.admit(one.lane)
    }
  }

  part(tenantId: string): void {
    const one = this.lanes.get(tenantId)!
    if (one.count === 0) return
    one.count--
    Object.defineProperty(one.lane, 'count', { value: one.count, configurable: true })
    this.buffer.dismiss(one.lane)
  }

  weighOrg(orgId: string, weight: number | undefined): void {
    if (weight === undefined) this.orgWeights.delete(orgId)
    else this.orgWeights.set(orgId, weight)
    this.buffer.reweighOrg(orgId)
  }

  weighTenant(tenantId: string, orgId: string, weight: number): void {
    Object.assign(this.lanes.get(tenantId)!, { orgId, weight })
    this.buffer.reweighTenant(tenantId, { orgId, weight })
  }

  /** Tickets by weight among all that have some, said plainly. */
  lengthOf(tenantId: string): number {
    const { orgId, weight, count } = this.lanes.get(tenantId)!
    const siblings = [...this.lanes.values()].filter((one) => one.orgId === orgId && one.count > 0)
    const active = siblings.reduce((sum, one) => sum + one.weight, 0)
    return count === 0 ? 0 : count / weightAmongAll(weight, this.orgWeights.get(orgId), active)
  }
}

const standard = BANDS.indexOf('standard')

describe('the shared buffer', () => {
  it('takes from a crowded org what the org has beyond its weight', () => {
    const given = new Buffered(100)
    for (let i = 0; i < 9; i++) given.add(`crowd${i}`, 'crowd')
    given.add('heavy', 'heavy')
    given.join('heavy', 30)
    for (let i = 0; i < 9; i++) given.join(`crowd${i}`, 5)
    // Tenants by themselves: heavy has most.
    expect(given.buffer.longest()?.tenantId).toBe('heavy')
    // As an org of weight 1 the nine have 45 against 30.
    given.weighOrg('crowd', 1)
    expect(given.buffer.longest()?.tenantId).toBe('crowd0')
    given.join('crowd3')
    expect(given.buffer.longest()?.tenantId).toBe('crowd3')
    given.weighOrg('crowd', 3)
    expect(given.buffer.longest()?.tenantId).toBe('heavy')
    given.weighTenant('heavy', 'heavy', 4)
    expect(given.buffer.longest()?.tenantId).toBe('crowd3')
    given.weighOrg('crowd', undefined)
    given.weighTenant('heavy', 'heavy', 1)
    expect(given.buffer.longest()?.tenantId).toBe('heavy')
  })

  it('finds the longest by weight among all, and says beforehand whom it would refuse', () => {
    const ids = ['a', 'b', 'c', 'd', 'e']
    const orgs = ['x', 'y', 'z']
    const command = fc.record({
      kind: fc.constantFrom('join', 'join', 'join', 'part', 'org', 'tenant'),
      id: fc.constantFrom(...ids),
      org: fc.constantFrom(...orgs),
      weight: fc.integer({ min: 0, max: 4 }),
    })
    const law = fc.property(fc.array(command, { maxLength: 80 }), (commands) => {
      const given = new Buffered(8)
      for (const [i, id] of ids.entries()) given.add(id, orgs[i % 2] as string, 1 + (i % 3))
      for (const { kind, id, org, weight } of commands) {
        if (kind === 'part') given.part(id)
        else if (kind === 'org') given.weighOrg(org, weight === 0 ? undefined : weight)
        else if (kind === 'tenant') given.weighTenant(id, org, 1 + weight)
        else {
          const { orgId, weight: own } = given.lanes.get(id)!
          const isRefused = given.buffer.wouldRefuse(makeTenant(id, { orgId, weight: own }), standard)
          given.join(id)
          const longest = given.buffer.longest(given.lanes.get(id)!.lane)!.tenantId
          expect(isRefused).toBe(given.buffer.isOver && longest === id)
          const most = Math.max(...ids.map((each) => given.lengthOf(each)))
          expect(given.lengthOf(longest)).toBeCloseTo(most, 9)
          if (given.buffer.isOver) given.part(longest)
        }
        given.buffer.assertInvariants()
      }
    })
    fc.assert(law, { numRuns: 200 })
  })
})
