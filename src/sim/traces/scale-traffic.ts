import { US_PER_S } from '../../base/clock.ts'
import { type HeapItem, IndexedHeap } from '../../base/indexed-heap.ts'
import { Rng } from '../../base/rng.ts'
import type { TraceRequest } from './trace.ts'

/**
 * A trace with more or less of some tenants' requests: at 0.5 half of them are left out, at 2.5 each comes twice, and
 * every second one a third time. What is left out or repeated is drawn from the seed, by tenant, so that another
 * tenant's factor does not change it.
 *
 * A copy comes within a second after its original: copies at the same instant would be a burst that nobody sent. A copy
 * begins like its original only as far as an engine had that beginning cached, where the trace tells: the rest of the
 * prompt is somebody else's.
 */
export interface TrafficScale {
  readonly seed: number
  readonly factorOf: (tenant: string | undefined) => number
}

const COPY_WITHIN_US = US_PER_S

interface LaterCopy extends HeapItem {
  readonly request: TraceRequest
}

export function* scaleTraffic(requests: Iterable<TraceRequest>, scale: TrafficScale): Iterable<TraceRequest> {
  const draws = new Map<string, Rng>()
  const later = new IndexedHeap<LaterCopy>()
  let sequence = 0
  for (const request of requests) {
    yield* dueBy(later, request.atUs)
    const factor = scale.factorOf(request.tenant)
    if (factor === 1) {
      yield request
      continue
    }
    const draw = drawOf(draws, scale.seed, request.tenant ?? '')
    const count = Math.floor(factor) + (draw.next() < factor % 1 ? 1 : 0)
    if (count > 0) yield request
    for (let i = 1; i < count; i++) {
      const atUs = request.atUs + Math.ceil(draw.next() * COPY_WITHIN_US)
      later.push({ heapIndex: -1, sequence: sequence++, request: copyOf(request, atUs) }, atUs)
    }
  }
  yield* dueBy(later, Number.POSITIVE_INFINITY)
}

function* dueBy(later: IndexedHeap<LaterCopy>, untilUs: number): Iterable<TraceRequest> {
  for (let next = later.peek(); next !== undefined && next.request.atUs <= untilUs; next = later.peek()) {
    later.remove(next)
    yield next.request
  }
}

function drawOf(draws: Map<string, Rng>, seed: number, tenant: string): Rng {
  const known = draws.get(tenant)
  if (known !== undefined) return known
  const made = Rng.stream(seed, `traffic/${tenant}`)
  draws.set(tenant, made)
  return made
}

function copyOf(request: TraceRequest, atUs: number): TraceRequest {
  const { asked, prefixHashes, hashUnitTokens } = request
  if (asked === undefined || prefixHashes === undefined) return { ...request, atUs }
  const shared = Math.floor(asked.cachedTokens / Math.max(1, hashUnitTokens ?? 1))
  return { ...request, atUs, prefixHashes: prefixHashes.slice(0, shared), asked: { ...asked, sessionHash: undefined } }
}
