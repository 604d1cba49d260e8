import { US_PER_S } from '../../base/clock.ts'
import { Rng } from '../../base/rng.ts'
import type { TraceRequest } from '../traces/trace.ts'

/**
 * Another day like the recorded one. Seed 1 is the recording itself. With any other seed, the requests of a tenant within
 * a minute keep their instants and exchange everything else (lengths, prefixes, conversations): the same rates, bursts
 * and lengths meet in other ways. How far a plan's figures differ between such days tells how much they depend on
 * chance.
 */
const DEAL_US = 60 * US_PER_S

export function* dealLengths(requests: Iterable<TraceRequest>, seed: number): Iterable<TraceRequest> {
  if (seed === 1) {
    yield* requests
    return
  }
  const rng = Rng.stream(seed, 'plan/deal')
  let minute: TraceRequest[] = []
  let endUs = DEAL_US
  for (const request of requests) {
    if (request.atUs >= endUs) {
      yield* dealt(minute, rng)
      minute = []
      endUs = (Math.floor(request.atUs / DEAL_US) + 1) * DEAL_US
    }
    minute.push(request)
  }
  yield* dealt(minute, rng)
}

function* dealt(minute: readonly TraceRequest[], rng: Rng): Iterable<TraceRequest> {
  const hands = new Map<string | undefined, TraceRequest[]>()
  for (const request of minute) {
    const hand = hands.get(request.tenant)
    if (hand === undefined) hands.set(request.tenant, [request])
    else hand.push(request)
  }
  for (const { tenant, atUs } of minute) {
    const hand = hands.get(tenant) as TraceRequest[]
    const taken = rng.below(hand.length)
    const request = hand[taken] as TraceRequest
    hand[taken] = hand.at(-1) as TraceRequest
    hand.pop()
    yield { ...request, atUs }
  }
}
