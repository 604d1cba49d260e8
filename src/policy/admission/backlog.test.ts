import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { SharePath } from '../../domain/share-path.ts'
import type { Band } from '../../domain/tenant.ts'
import { Backlog } from './backlog.ts'
import { EPOCH_US } from './fading-scale.ts'

interface Twin {
  readonly share: SharePath
  readonly band: Band
  backlog: number
}

interface Sibling {
  readonly id: string
  readonly weight: number
  backlog: number
}

function siblings(twins: readonly Twin[], nodeOf: (share: SharePath) => { id: string; weight: number }): Sibling[] {
  const byId = new Map<string, Sibling>()
  for (const twin of twins) {
    const node = nodeOf(twin.share)
    const sibling = byId.get(node.id) ?? { ...node, backlog: 0 }
    sibling.backlog += twin.backlog
    byId.set(node.id, sibling)
  }
  return [...byId.values()]
}

const beside = (all: readonly Sibling[], own: { id: string; weight: number }, work: number): number =>
  all.reduce(
    (sum, other) => (other.id === own.id ? sum : sum + Math.min(other.backlog, (other.weight / own.weight) * work)),
    0,
  )

/** Its own, or that of its tenants with backlog. */
function orgWeight(twins: readonly Twin[], share: SharePath): number {
  const active = new Map<string, number>()
  for (const twin of twins) {
    if (twin.share.org.id === share.org.id) active.set(twin.share.tenant.id, twin.share.tenant.weight)
  }
  return share.org.weight ?? [...active.values()].reduce((sum, weight) => sum + weight, 0)
}

/** The formula, written down as it stands: Σ_j min(B_j, (w_j ÷ w_i) · work), level by level. */
function naiveAhead(twins: readonly Twin[], share: SharePath, band: Band, cost: number): number {
  const ofOrg = twins.filter((twin) => twin.share.org.id === share.org.id)
  const ofTenant = ofOrg.filter((twin) => twin.share.tenant.id === share.tenant.id)
  const ofBand = ofTenant.filter((twin) => twin.band === band)
  const total = (list: readonly Twin[]): number => list.reduce((sum, twin) => sum + twin.backlog, 0)
  let work = total(ofBand.filter((twin) => twin.share.key.id === share.key.id)) + cost
  work += beside(
    siblings(ofBand, (s) => s.key),
    share.key,
    work,
  )
  if (band !== 'interactive') work += total(ofTenant.filter((twin) => twin.band === 'interactive'))
  work += beside(
    siblings(ofOrg, (s) => s.tenant),
    share.tenant,
    work,
  )
  const orgs = siblings(twins, (s) => ({ id: s.org.id, weight: orgWeight(twins, s) }))
  const ownWeight = orgWeight([...twins, { share, band, backlog: cost }], share)
  work += beside(orgs, { id: share.org.id, weight: ownWeight }, work)
  return work - cost
}

function shareOf(org: number, tenant: number, key: number): SharePath {
  return {
    org: { id: `org-${org}`, weight: org % 2 === 0 ? 1 + org / 4 : undefined },
    tenant: { id: `tenant-${org}-${tenant}`, weight: [0.5, 1, 1.3, 4][(org + tenant) % 4] as number },
    key: { id: `key-${org}-${tenant}-${key}`, weight: 1 + key },
  }
}

describe('backlog', () => {
  it('reads as in the header', () => {
    const backlog = new Backlog()
    const share = (id: string): SharePath => ({
      org: { id: 'o', weight: 1 },
      tenant: { id, weight: 1 },
      key: { id: `${id}-key`, weight: 1 },
    })
    backlog.join(0, { share: share('A'), band: 'standard', cost: 100 })
    backlog.join(0, { share: share('B'), band: 'standard', cost: 500 })
    backlog.join(0, { share: share('C'), band: 'standard', cost: 2_000 })
    expect(backlog.aheadOf(0, { share: share('A'), band: 'standard', cost: 300 })).toBe(900)
    expect(backlog.aheadOf(0, { share: share('A'), band: 'interactive', cost: 300 })).toBe(600)
    const asked = { share: share('A'), band: 'standard' as const, cost: 300 }
    expect(backlog.waitUs(0, asked, { drainPerUs: 1, isOwnCounted: false })).toBe(600)
    expect(backlog.aheadOf(0, { share: share('D'), band: 'standard', cost: 300 })).toBe(700)
  })

  it('counts what waits by new weights, and goes on so when a ticket leaves that joined with an old one', () => {
    const backlog = new Backlog()
    const share = (org: string, tenant: string, orgWeight?: number, weight = 1): SharePath => ({
      org: { id: org, weight: orgWeight },
      tenant: { id: tenant, weight },
      key: { id: `${tenant}-key`, weight: 1 },
    })
    const ahead = (): number => backlog.aheadOf(0, { share: share('y', 'y'), band: 'standard', cost: 100 })
    const first = { share: share('x', 'x1'), band: 'standard', cost: 500 } as const
    backlog.join(0, first)
    backlog.join(0, { share: share('x', 'x1'), band: 'standard', cost: 5_000 })
    backlog.join(0, { share: share('x', 'x2'), band: 'standard', cost: 5_000 })
    // Two tenants of weight 1 are served twice what the newcomer is.
    expect(ahead()).toBe(200)
    backlog.reweigh({ kind: 'org', orgId: 'x', weight: 5 })
    expect(ahead()).toBe(500)
    backlog.leave(first, 0)
    expect(ahead()).toBe(500)
    backlog.reweigh({ kind: 'org', orgId: 'x', weight: undefined })
    expect(ahead()).toBe(200)
    backlog.reweigh({ kind: 'tenant', tenantId: 'x2', orgId: 'x', weight: 3 })
    expect(ahead()).toBe(400)
    backlog.reweigh({ kind: 'org', orgId: 'nobody', weight: 3 })
    backlog.reweigh({ kind: 'key', keyId: 'x1-key', weight: 3 })
    expect(ahead()).toBe(400)
  })

  it('equals the naive sum over three levels, whatever came and went', () => {
    const move = fc.record({
      org: fc.nat(3),
      tenant: fc.nat(4),
      key: fc.nat(1),
      band: fc.constantFrom<Band>('interactive', 'standard'),
      cost: fc.integer({ min: 1, max: 50_000 }),
      isJoining: fc.boolean(),
    })
    fc.assert(
      fc.property(
        fc.array(move, { minLength: 1, maxLength: 150 }),
        fc.integer({ min: 1, max: 100_000 }),
        (moves, cost) => {
          const backlog = new Backlog()
          const twins = new Map<string, Twin>()
          for (const { org, tenant, key, band, cost: moved, isJoining } of moves) {
            const share = shareOf(org, tenant, key)
            const name = `${share.key.id} ${band}`
            const twin = twins.get(name) ?? { share, band, backlog: 0 }
            twins.set(name, twin)
            const amount = isJoining ? moved : -Math.min(moved, twin.backlog)
            if (amount === 0) continue
            twin.backlog += amount
            if (amount > 0) backlog.join(0, { share, band, cost: amount })
            else backlog.leave({ share, band, cost: -amount }, 0)
          }
          const all = [...twins.values()].filter((twin) => twin.backlog > 0)
          expect(backlog.total).toBe(all.reduce((sum, twin) => sum + twin.backlog, 0))
          for (const asked of [shareOf(0, 0, 0), shareOf(3, 2, 1), shareOf(9, 9, 0)]) {
            for (const band of ['interactive', 'standard'] as const) {
              const naive = naiveAhead(all, asked, band, cost)
              expect(Math.abs(backlog.aheadOf(0, { share: asked, band, cost }) - naive)).toBeLessThan(
                1e-6 * (1 + naive),
              )
            }
          }
        },
      ),
      { numRuns: 300 },
    )
  })

  it('solves for the wait with the flow of those who run out before', () => {
    const move = fc.record({ tenant: fc.nat(6), cost: fc.integer({ min: 1, max: 5_000 }), isGranted: fc.boolean() })
    const drainPerUs = 0.01
    const now = 2_000_000
    fc.assert(
      fc.property(
        fc.array(move, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 9_000 }),
        (moves, cost) => {
          const backlog = new Backlog()
          const lanes = Array.from({ length: 7 }, (_, i) => ({ share: shareOf(2 * i, 0, 0), backlog: 0, flow: 0 }))
          for (const { tenant, cost: moved, isGranted } of moves) {
            const lane = lanes[tenant] as (typeof lanes)[number]
            const ticket = { share: lane.share, band: 'standard' as const, cost: moved }
            backlog.join(now, ticket)
            if (isGranted) backlog.leave(ticket, now)
            if (isGranted) lane.flow += moved
            else lane.backlog += moved
          }
          const own = lanes[0] as (typeof lanes)[number]
          const weightOf = (share: SharePath): number => share.org.weight as number
          const x = (own.backlog + cost) / weightOf(own.share)
          const xBefore = own.backlog / weightOf(own.share)
          let ahead = own.backlog
          let flow = 0
          let room = 0
          for (const other of lanes.slice(1)) {
            const weight = weightOf(other.share)
            if (other.backlog + other.flow === 0) continue
            ahead += Math.min(other.backlog, weight * x)
            if (other.backlog > weight * xBefore) continue
            flow += other.flow / (EPOCH_US + now)
            room += weight * xBefore - other.backlog
          }
          const atMost = (ahead + room) / drainPerUs
          const naive = ahead === 0 ? 0 : flow >= drainPerUs ? atMost : Math.min(ahead / (drainPerUs - flow), atMost)
          const asked = { share: own.share, band: 'standard' as const, cost }
          const told = backlog.waitUs(now, asked, { drainPerUs, isOwnCounted: true })
          expect(Math.abs(told - naive)).toBeLessThan(1e-6 * (1 + naive))
        },
      ),
    )
  })

  it('forgets tenants and orgs that have no backlog and had none lately', () => {
    const backlog = new Backlog()
    for (let i = 0; i < 3_000; i++) {
      const ticket = { share: shareOf(i, 0, 0), band: 'standard' as const, cost: 10 }
      backlog.join(i * 100_000, ticket)
      backlog.leave(ticket, i * 100_000)
    }
    expect(backlog.orgCount).toBeLessThan(700)
    expect(backlog.total).toBe(0)
    expect(backlog.aheadOf(0, { share: shareOf(1, 1, 0), band: 'standard', cost: 500 })).toBe(0)
  })
})
