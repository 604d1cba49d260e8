import { describe, expect, it } from 'vitest'
import { makePlainRule, type RoutingRule } from './plain-rules.ts'

const room = (ordinal: number, sequences = 0, engineUs = 0) => ({
  replica: { id: `r${ordinal}`, poolId: 'p', model: 'm', releaseId: 'm@1', region: 'here' },
  ordinal,
  place: ordinal,
  kvTokensMax: 1_000,
  ledger: { engineUs, sequences, kvTokens: 0 },
})

const chosen = (rule: RoutingRule, rounds: ReadonlyArray<ReturnType<typeof room>[]>) => {
  const plain = makePlainRule(rule)
  return rounds.map((rooms) => plain?.choose(rooms).ordinal)
}

describe('the rules of others', () => {
  it('in turn goes round, over those that have no room, and starts again', () => {
    const all = [room(2), room(0), room(1)]
    expect(chosen('round-robin', [all, all, [room(0), room(1)], all, [room(2)], all])).toEqual([0, 1, 0, 1, 2, 0])
  })

  it.each([
    ['fewest-requests', [room(0, 3, 1), room(1, 1, 9), room(2, 1, 5)], 1],
    ['least-work', [room(0, 3, 1), room(1, 1, 9), room(2, 1, 1)], 0],
  ] as const)('%s, and of equals the first', (rule, rooms, wanted) => {
    expect(chosen(rule, [[...rooms], [...rooms].reverse()])).toEqual([wanted, wanted])
  })

  it('is none for our own', () => expect(makePlainRule('soonest-first-token')).toBeUndefined())
})
