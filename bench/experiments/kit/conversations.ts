import { secondsToUs } from '../../../src/base/clock.ts'
import { Rng } from '../../../src/base/rng.ts'
import { drawExponential, drawTokens } from '../../../src/sim/clients/draw.ts'
import { loadScenario } from '../../../src/sim/scenario/fs-scenario.ts'
import { openTrace } from '../../../src/sim/traces/fs-trace.ts'
import type { TraceRequest } from '../../../src/sim/traces/trace.ts'

/** Requests of the Azure conversation trace at any rate: the recording played faster, or its lengths drawn anew. */
export interface ConversationOptions {
  readonly trace: string | undefined
  readonly ratePerS: number
  readonly durationS: number
  readonly seed: number
}

/** Of the recording itself. */
const TRACE_PER_S = 5.5

export function conversations({ trace, ratePerS, durationS, seed }: ConversationOptions): TraceRequest[] {
  if (trace !== undefined) {
    const all = openTrace(trace, { factor: ratePerS / TRACE_PER_S, seed }).requests()
    return [...all].filter(({ atUs }) => atUs < secondsToUs(durationS))
  }
  const spec = loadScenario('azure-conv').scenario.workload[0]!
  const arrivals = Rng.stream(seed, 'arrivals')
  const lengths = Rng.stream(seed, 'lengths')
  const requests: TraceRequest[] = []
  for (let atS = 0; ; ) {
    atS += drawExponential(arrivals) / ratePerS
    if (atS >= durationS) return requests
    const promptTokens = drawTokens(spec.prompt, lengths)
    requests.push({ atUs: secondsToUs(atS), promptTokens, outputTokens: drawTokens(spec.output, lengths) })
  }
}
