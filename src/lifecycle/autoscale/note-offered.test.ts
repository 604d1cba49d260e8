import { describe, expect, it } from 'vitest'
import { ACME } from '../../../test/support/requests.ts'
import { finished } from '../../../test/support/scripted-backend.ts'
import { VirtualWorld } from '../../../test/support/virtual-world.ts'
import type { Allowance } from '../../domain/tenant.ts'

const online = (world: VirtualWorld): number => [...world.platform.policies.poolsById.values()][0]!.offered.total.online

/** The work that was offered before a request, after it, and how the request ended. */
async function asked(allowance: Allowance, before: number) {
  const { world } = await VirtualWorld.scripted([finished(4)], { queueMax: 1 })
  const tenant = { ...ACME, allowance }
  for (let i = 0; i < before; i++) world.serve({ tenant })
  const was = online(world)
  const last = world.serve({ tenant })
  const is = online(world)
  await world.run()
  return { was, is, code: last.settled?.refusal?.code, each: was / before }
}

describe('the demand that replicas are made for', () => {
  it('counts what is admitted', async () => {
    const { was, is, code } = await asked({}, 0)
    expect(code).toBeUndefined()
    expect([was, is > 0]).toEqual([0, true])
  })

  it('counts what finds no room: one more replica would serve it', async () => {
    const { was, is, code, each } = await asked({}, 2)
    expect(code).toBeDefined()
    expect(is - was).toBeCloseTo(each)
  })

  it.each([
    ['rate-limit-requests', { requests: { perMinute: 1, burst: 1 } }],
    ['concurrency-limit', { concurrencyMax: 1 }],
  ])('does not count what the tenant’s own limits refuse (%s): no replica would serve it', async (code, allowance) => {
    const found = await asked(allowance, 1)
    expect(found.code).toBe(code)
    expect(found.is).toBe(found.was)
  })
})
