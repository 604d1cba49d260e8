import { describe, expect, it } from 'vitest'
import { ACME } from '../../../test/support/requests.ts'
import { finished, lost, refusedBy, type Turnout } from '../../../test/support/scripted-backend.ts'
import { type Served, VirtualWorld } from '../../../test/support/virtual-world.ts'
import type { AttemptEnded } from '../../domain/entry.ts'
import type { Request } from '../../domain/request.ts'
import type { Measured } from '../../policy/dispatch/offer.ts'

/** A prompt that the replica reads in some hundreds of milliseconds, and a promise that leaves the time for it. */
const PROMPT_TOKENS = 8_000
const LONG: Partial<Request> = {
  segments: [{ role: 'user', tokens: PROMPT_TOKENS }],
  slo: { ...ACME.slo, ttftUs: 60_000_000, totalUs: 120_000_000 },
  tenant: { ...ACME, contract: 'reject', allowance: { tokens: { perMinute: 1_000_000, burst: 1_000_000 } } },
}
const SILENT: Turnout = { deltas: 0, ending: 'hangs' }

/** Everything that one ticket was charged, and what the platform bears. */
async function chargesOf(
  turnouts: readonly Turnout[],
  play: (world: VirtualWorld, served: Served, readUs: number) => void = () => {},
  asked: Partial<Request> = {},
) {
  const { world } = await VirtualWorld.scripted(turnouts)
  const { turnstile, policies, pools } = world.platform
  const measured: Measured[] = []
  const giveBack = turnstile.giveBack.bind(turnstile)
  turnstile.giveBack = (lease, seen) => {
    measured.push(seen)
    giveBack(lease, seen)
  }
  const booked: number[] = []
  const settle = policies.budgets.settle.bind(policies.budgets)
  policies.budgets.settle = (now, reservation, tokens) => {
    booked.push(tokens)
    settle(now, reservation, tokens)
  }
  const readUs = policies.poolsById.get(pools[0]!.id)!.speedAlone.prefillUs(PROMPT_TOKENS, 0)
  const served = world.serve({ ...LONG, deadlineAt: world.virtual.now() + 60_000_000, ...asked })
  play(world, served, readUs)
  await world.run(world.virtual.now() + 200_000_000)
  const ended = world.entries.filter((entry): entry is AttemptEnded => entry.kind === 'attempt-ended')
  expect(world.unrest()).toEqual([])
  return {
    settled: served.settled!,
    costs: measured.map(({ cost }) => cost),
    unpaid: ended.map(({ unpaidCost }) => unpaidCost),
    booked,
  }
}

const hangUpAfter = (share: number) => (world: VirtualWorld, served: Served, readUs: number) =>
  world.after(Math.round(readUs * share), () => served.cancellation.cancel('client-gone'))

describe('who pays for an attempt', () => {
  it('the tenant pays for what was read when its client hangs up before the first token', async () => {
    const { settled, costs, unpaid, booked } = await chargesOf([SILENT], hangUpAfter(0.25))
    expect(settled).toMatchObject({ outcome: 'cancelled', usage: { outputTokens: 0 } })
    expect(costs[0]).toBeGreaterThan(PROMPT_TOKENS * 0.24)
    expect(costs[0]).toBeLessThan(PROMPT_TOKENS * 0.26)
    expect(unpaid).toEqual([0])
    // Fairness, budgets and the journal say the same.
    expect([settled.usage.promptTokens, ...booked]).toEqual([costs[0], costs[0]])
  })

  it('at most for its prompt, however late the client hangs up', async () => {
    const { costs, booked } = await chargesOf([SILENT], hangUpAfter(3))
    expect([...costs, ...booked]).toEqual([PROMPT_TOKENS, PROMPT_TOKENS])
  })

  it('the tenant pays when its own deadline ends the attempt', async () => {
    const { settled, costs, unpaid } = await chargesOf([SILENT], undefined, { isCutOff: true })
    expect(settled).toMatchObject({ outcome: 'expired' })
    expect([costs.at(-1), unpaid.at(-1)]).toEqual([PROMPT_TOKENS, 0])
  })

  it('after the first token, for the prompt and for what came', async () => {
    const talks: Turnout = { deltas: 3, everyUs: 1_000, ending: 'hangs' }
    const { costs, unpaid } = await chargesOf([talks], (world, served) =>
      world.after(10_000, () => served.cancellation.cancel('client-gone')),
    )
    expect([costs, unpaid]).toEqual([[PROMPT_TOKENS + 4 * 3], [0]])
  })

  it('the platform bears attempts that were lost, and the tenant only the one that answered', async () => {
    const { settled, costs, unpaid, booked } = await chargesOf([{ ...lost(0), everyUs: 50_000 }, finished(2)])
    expect(settled).toMatchObject({ outcome: 'completed', attempts: 2 })
    expect(costs).toEqual([0, 20 + 4 * 2])
    expect(unpaid[0]).toBeGreaterThan(100)
    expect(unpaid[1]).toBe(0)
    expect(booked).toEqual([22])
  })

  it('the platform bears an answer that broke off', async () => {
    const { settled, costs, unpaid, booked } = await chargesOf([lost(2)])
    expect(settled).toMatchObject({ outcome: 'failed', usage: { outputTokens: 2 } })
    expect([costs, unpaid, booked]).toEqual([[0], [PROMPT_TOKENS + 4 * 2], [0]])
  })

  it('nobody pays for a refusal', async () => {
    const { settled, costs, unpaid, booked } = await chargesOf([refusedBy('request')])
    expect(settled).toMatchObject({ outcome: 'failed' })
    expect([costs, unpaid, booked]).toEqual([[0], [0], [0]])
  })

  it('the platform bears what it calls off itself', async () => {
    const { settled, costs, unpaid, booked } = await chargesOf([SILENT], (world, _, readUs) =>
      world.after(Math.round(readUs / 2), () => world.platform.cancelAll('shutting-down')),
    )
    expect(settled).toMatchObject({ outcome: 'failed', refusal: { code: 'shutting-down' } })
    expect([costs, booked]).toEqual([[0], [0]])
    expect(unpaid[0]).toBeGreaterThan(PROMPT_TOKENS * 0.49)
  })

  it('a client that has gone pays, though its replica was lost in the same instant', async () => {
    const { costs, unpaid } = await chargesOf([{ ...lost(0), everyUs: 20_000 }], (world, served) =>
      world.after(20_000, () => served.cancellation.cancel('client-gone')),
    )
    expect(costs[0]).toBeGreaterThan(0)
    expect(unpaid).toEqual([0])
  })
})
