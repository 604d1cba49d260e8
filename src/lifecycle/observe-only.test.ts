import { describe, expect, it } from 'vitest'
import { ACME } from '../../test/support/requests.ts'
import { finished } from '../../test/support/scripted-backend.ts'
import { type Served, VirtualWorld } from '../../test/support/virtual-world.ts'
import type { Request } from '../domain/request.ts'
import { LANE_DEFAULTS } from '../policy/fairness/lane.ts'

/**
 * The same trouble in both modes. Enforced, the request is refused or served less; in observe-only mode it is served in
 * full, and the journal says what would have been.
 */
interface Trouble {
  readonly name: string
  /** Makes the trouble, then sends the request in question. */
  readonly send: (world: VirtualWorld) => Served | Promise<Served>
  /** Code of the refusal, or name of the rung, when it is enforced. */
  readonly enforced: { readonly code: string } | { readonly rung: string }
  readonly would: RegExp
}

const SECOND_US = 1_000_000

/** Keeps the only replica busy, so that nothing is let in because a replica is idle. */
const occupy = (world: VirtualWorld): Served => world.serve(LONG)

/** Offline work with all the time in the world: taken in spite of any queue. */
const LONG: Partial<Request> = { band: 'offline', deadlineAt: 1e15, outputTokensMax: 1_000 }

/** Samples of the highest pressure, one a second, until the tenant dwells on this depth. */
async function press(world: VirtualWorld, depth: number): Promise<void> {
  const { ladder } = world.platform.policies
  const poolId = world.platform.pools[0]!.id
  while (ladder.depthOf(ACME, poolId) < depth) {
    await world.run(world.virtual.now() + SECOND_US)
    ladder.observe(world.virtual.now(), { tenant: ACME, poolId, pressure: 4, demand: 2 })
  }
}

const TROUBLES: readonly Trouble[] = [
  {
    name: 'a budget that is spent',
    send: (world) => {
      const tenant = { ...ACME, allowance: { requests: { perMinute: 1, burst: 1 } } }
      world.serve({ tenant })
      return world.serve({ tenant })
    },
    enforced: { code: 'rate-limit-requests' },
    would: /^observe only; it would have been refused: /,
  },
  {
    name: 'an answer predicted to be late',
    send: (world) => {
      for (let i = 0; i < 40; i++) occupy(world)
      return world.serve({ ...LONG, outputTokensMax: 100, deadlineAt: soon(world, 900_000) })
    },
    enforced: { code: 'predicted-late' },
    would: /^observe only; it would have been refused: predicted to miss its (ttft|deadline) of/,
  },
  {
    name: 'a deadline that no engine could meet',
    send: (world) => {
      occupy(world)
      return world.serve({ outputTokensMax: 100, deadlineAt: soon(world, 50_000) })
    },
    enforced: { code: 'deadline-infeasible' },
    would: /^observe only; it would have been refused: even an idle engine needs/,
  },
  {
    name: 'a lane that is full',
    send: (world) => {
      for (let i = 0; i <= LANE_DEFAULTS.depthMax; i++) world.serve(LONG)
      return world.serve(LONG)
    },
    enforced: { code: 'lane-full' },
    would: /^observe only; it would have been refused: 512 requests of this key are waiting already/,
  },
  {
    name: 'a band that is shed',
    send: async (world) => {
      await press(world, 5)
      occupy(world)
      return world.serve(LONG)
    },
    enforced: { code: 'band-shed' },
    would: /^observe only; it would have been refused: acme is under pressure and its offline work is shed first/,
  },
  {
    name: 'a tenant on a lower rung',
    send: async (world) => {
      await press(world, 3)
      return world.serve({ outputTokensMax: 1_000 })
    },
    enforced: { rung: 'cap-output' },
    would: /^observe only; it would have run on the rung cap-output/,
  },
]

const soon = (world: VirtualWorld, us: number): number => world.virtual.now() + us

async function meet(
  { send }: Pick<Trouble, 'send'>,
  mode: 'enforce' | 'observe',
): Promise<{ world: VirtualWorld; served: Served }> {
  const { world } = await VirtualWorld.scripted([finished(2)], {
    queueMax: 10_000,
    waitMsMax: 86_400_000,
    tree: { admission: { mode } },
  })
  const served = await send(world)
  await world.run()
  return { world, served }
}

describe('observe-only mode', () => {
  it.each(TROUBLES)('serves in full and says what would have been: $name', async (trouble) => {
    const { world, served } = await meet(trouble, 'observe')
    expect(served.settled).toMatchObject({ outcome: 'completed', rung: 'full', refusal: undefined })
    expect(served.sink).toMatchObject({ refusal: undefined, tokens: 2, head: { rung: 'full' } })
    const admitted = world.entries.find((entry) => entry.kind === 'admitted' && entry.ticketId === served.request.id)
    expect(admitted).toMatchObject({ rung: 'full', because: expect.stringMatching(trouble.would) })
    const others = world.entries.filter((entry) => entry.kind === 'settled')
    expect(others.filter((entry) => entry.outcome !== 'completed' || entry.rung !== 'full')).toEqual([])
    expect(world.unrest()).toEqual([])
  })

  it.each(TROUBLES)('is what keeps it from being enforced: $name', async (trouble) => {
    const { world, served } = await meet(trouble, 'enforce')
    if ('code' in trouble.enforced) {
      expect(served.settled).toMatchObject({ outcome: 'rejected', refusal: { code: trouble.enforced.code } })
    } else expect(served.settled).toMatchObject({ outcome: 'completed', rung: trouble.enforced.rung })
    expect(world.unrest()).toEqual([])
  })

  it('trims nothing by itself: a chat longer than the context is refused, where the ladder would have cut it', async () => {
    const segments = Array.from({ length: 7 }, (_, i) => ({
      role: i % 2 === 0 ? ('user' as const) : ('assistant' as const),
      tokens: 7_000,
    }))
    const chat: Pick<Trouble, 'send'> = { send: (world) => world.serve({ segments }) }
    expect((await meet(chat, 'enforce')).served.settled).toMatchObject({ outcome: 'completed', rung: 'trim-context' })
    expect((await meet(chat, 'observe')).served.sink.refusal).toMatchObject({ code: 'context-length-exceeded' })
  })

  it('still refuses what no engine can run, and keeps the bound of the whole queue', async () => {
    const { world } = await VirtualWorld.scripted([finished(1)], {
      queueMax: 2,
      tree: { admission: { mode: 'observe' } },
    })
    const tooLong = world.serve({ segments: [{ role: 'user', tokens: 1_000_000 }] })
    expect(tooLong.sink.refusal).toMatchObject({ code: 'context-length-exceeded' })
    const all = Array.from({ length: 4 }, () => world.serve(LONG))
    expect(all[3]!.sink.refusal).toMatchObject({ code: 'queue-full', blame: 'platform' })
    await world.run()
    expect(all.slice(0, 3).every(({ settled }) => settled?.outcome === 'completed')).toBe(true)
    expect(world.unrest()).toEqual([])
  })
})
