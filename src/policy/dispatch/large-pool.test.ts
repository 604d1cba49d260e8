import { expect, it } from 'vitest'
import { makeEstimate, makeKey, makeTenant } from '../../../test/support/demand.ts'
import { FixedLimit } from '../limits/fixed.ts'
import { Dispatcher } from './dispatcher.ts'
import type { Offer } from './offer.ts'
import type { Placer } from './placer.ts'

/** Replicas with one slot each; one of them, far from the first, has memory for big requests. */
function largePool(count: number, bigAt: number) {
  const shown: number[] = []
  const placer: Placer = {
    because: 'the first',
    choose: (_now, _ask, rooms) => {
      shown.push(rooms.length)
      return rooms[0]!
    },
  }
  const dispatcher = new Dispatcher({ placer })
  for (let i = 0; i < count; i++) {
    const replica = { id: `r${i}`, poolId: 'pool', model: 'm', releaseId: 'm@1', region: 'here' }
    dispatcher.addReplica(0, {
      replica,
      limit: new FixedLimit({ sequencesMax: 1 }),
      kvTokensMax: i === bigAt ? 9e9 : 1_000,
    })
  }
  let tickets = 0
  const offer = (promptTokens: number, over: Partial<Offer> = {}): string | undefined => {
    const ticketId = `t${tickets++}`
    const who = { tenant: makeTenant('a'), key: makeKey('a-key', 'a'), band: 'standard' as const }
    const estimate = makeEstimate(promptTokens, 10)
    const times = { arrivedAt: 0, expiresAt: 1e12 }
    const asked = { ticketId, poolId: 'pool', ...who, bid: 0, estimate, ...times, isReady: true, ...over }
    const { effects } = dispatcher.offer(0, asked)
    dispatcher.assertInvariants()
    const effect = effects[0]
    return effect?.kind === 'granted' ? effect.lease.replica.id : undefined
  }
  return { dispatcher, offer, shown }
}

it('shows a few of many replicas, from another place each time, and uses them all', () => {
  const { offer, shown } = largePool(500, -1)
  const used = new Set(Array.from({ length: 500 }, () => offer(100)))
  expect(used.size).toBe(500)
  expect(used).not.toContain(undefined)
  expect(shown[0]).toBeLessThan(50)
  const firsts = Array.from({ length: 20 }, (_, i) => [...used][i])
  expect(new Set(firsts).size).toBe(20)
})

it('finds the only one that fits, wherever it is', () => {
  expect(largePool(500, 377).offer(50_000)).toBe('r377')
})

it('shows all of them to a request that one of them may know', () => {
  const { offer, shown } = largePool(500, -1)
  offer(100, { prefixHashes: [1, 2, 3] })
  expect(shown).toEqual([500])
})
