import { Rng } from '../../../src/base/rng.ts'
import { openTrace } from '../../../src/sim/traces/fs-trace.ts'
import type { TraceRequest } from '../../../src/sim/traces/trace.ts'

/**
 * One recording, and as many workloads as there are seeds: stretches of it drawn anew, with replacement, and put one after
 * the other (a block bootstrap; Künsch, 1989). Inside a stretch the recording is as it was, so bursts and runs of long
 * answers stay; what was tuned on the recording's own order has not seen this one.
 */
const STRETCH_S = 60

export interface Reordering {
  readonly path: string
  /** Speed of time. */
  readonly factor: number
  readonly seed: number
  /** Of the recording, at its own speed. */
  readonly lengthS: number
}

export function reorderedTrace({ path, factor, seed, lengthS }: Reordering): TraceRequest[] {
  const count = Math.floor(lengthS / STRETCH_S)
  const stretches = Array.from({ length: count }, (): TraceRequest[] => [])
  for (const request of openTrace(path, { seed }).requests())
    stretches[Math.floor(request.atUs / (STRETCH_S * 1e6))]?.push(request)
  const rng = Rng.stream(seed, 'stretches')
  const requests: TraceRequest[] = []
  for (let place = 0; place < count; place++) {
    const drawn = rng.below(count)
    for (const request of stretches[drawn] ?? []) {
      const atUs = Math.round((request.atUs + (place - drawn) * STRETCH_S * 1e6) / factor)
      requests.push({ ...request, atUs })
    }
  }
  return requests
}
