import { describe, expect, it } from 'vitest'
import { makeRequest } from '../../test/support/requests.ts'
import { finished } from '../../test/support/scripted-backend.ts'
import { type Served, VirtualWorld } from '../../test/support/virtual-world.ts'
import type { Request } from '../domain/request.ts'
import { LANE_DEFAULTS } from '../policy/fairness/lane.ts'
import { habitOf } from '../policy/planning/output-length.ts'

/** No promise of a first token and no deadline to speak of: only the queue's bounds can refuse it. */
const PATIENT: Partial<Request> = { band: 'offline', deadlineAt: 1e15, outputTokensMax: 6_000 }

/** One replica that serves one at a time, and a tenant whose answers are known to be long. */
async function worldOfLongAnswers() {
  const { world } = await VirtualWorld.scripted([finished(1)], { queueMax: 10_000, waitMsMax: 86_400_000 })
  const habit = habitOf(makeRequest(PATIENT))
  for (let i = 0; i < 50; i++) world.platform.policies.outputs.observe(habit, { tokens: 6_000, isCut: false })
  const lane = () => world.platform.policies.dispatcher.laneOf(world.platform.pools[0]!.id, 'acme-1', 'offline')
  return { world, lane }
}

/** Requests in full until the lane has no place for another; returns the first that was not served in full. */
function fillLane(
  world: VirtualWorld,
  over: Partial<Request> = {},
): { readonly full: Served[]; readonly next: Served } {
  const full: Served[] = []
  for (;;) {
    const next = world.serve({ ...PATIENT, ...over })
    const said = world.entries.findLast((entry) => entry.kind === 'admitted' && entry.ticketId === next.request.id)
    if (said?.kind !== 'admitted' || said.rung !== 'full') return { full, next }
    full.push(next)
    expect(full.length).toBeLessThan(LANE_DEFAULTS.depthMax)
  }
}

describe('a lane that is full by work', () => {
  it('admits on a lower rung whose work still has a place', async () => {
    const { world, lane } = await worldOfLongAnswers()
    const { full, next } = fillLane(world)
    expect(lane()!.count).toBe(full.length)
    await world.run()
    expect(next.settled).toMatchObject({ outcome: 'completed', rung: 'cap-output' })
    expect(next.sink.head).toMatchObject({ rung: 'cap-output' })
    expect(full.every(({ settled }) => settled?.outcome === 'completed' && settled.rung === 'full')).toBe(true)
    expect(world.unrest()).toEqual([])
  })

  it('refuses when no rung’s work has a place, by admission’s verdict and before anything is taken', async () => {
    const { world, lane } = await worldOfLongAnswers()
    fillLane(world)
    let last: Served
    do last = world.serve(PATIENT)
    while (last.sink.refusal === undefined && lane()!.count < LANE_DEFAULTS.depthMax)
    const before = lane()!.engineUs
    expect(last.sink.refusal).toMatchObject({ code: 'lane-work-full', blame: 'tenant' })
    expect(last.sink.refusal!.retryAfterUs).toBeGreaterThan(0)
    expect(world.kinds(last.request.id)).toEqual(['arrived', 'settled'])
    // A shorter question of the same key still has a place.
    expect(world.serve({ ...PATIENT, outputTokensMax: 1 }).sink.refusal).toBeUndefined()
    expect(lane()!.engineUs).toBeGreaterThan(before)
    await world.run()
    expect(world.unrest()).toEqual([])
  })

  it('refuses at once a tenant that would rather be refused than be served less', async () => {
    const { world } = await worldOfLongAnswers()
    const proud = { ...makeRequest().tenant, contract: 'reject' } as const
    const { next } = fillLane(world, { tenant: proud })
    expect(next.sink.refusal).toMatchObject({ code: 'lane-work-full', blame: 'tenant' })
    await world.run()
    expect(world.unrest()).toEqual([])
  })
})

describe('the promise of the first token', () => {
  it('is the request’s own, not the one that its tenant was sold', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)])
    for (let i = 0; i < 30; i++) world.serve()
    const { slo } = makeRequest()
    const [tight, loose] = [30_000, 60_000_000].map((ttftUs) => world.serve({ slo: { ...slo, ttftUs } }))
    const refusal = tight!.sink.refusal
    expect(refusal).toMatchObject({ code: 'predicted-late', detail: { missed: 'ttft', ttft_ms: 30 } })
    expect(loose!.sink.refusal).toBeUndefined()
    await world.run()
    expect(loose!.settled).toMatchObject({ outcome: 'completed' })
    expect(world.unrest()).toEqual([])
  })
})
