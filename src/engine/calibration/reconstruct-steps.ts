import type { MeasuredRequest, MeasuredStep } from './measurements.ts'

/**
 * Who was in each step of a served workload?
 *
 * The recording says how many prompt tokens a step computed and how many sequences decoded, not whose. But the engine
 * was first come, first served, so the requests in order of arrival tell: prompt tokens go to the first request whose
 * prompt is not done; it decodes from the step after, once for each output token but the first. The counts and context
 * sums that follow from this must be those recorded; if they are, the chunks' contexts and the longest context are known
 * too. If not, that engine worked otherwise, and the answer is undefined.
 */
export function reconstructSteps(
  steps: readonly MeasuredStep[],
  requests: readonly MeasuredRequest[],
): readonly MeasuredStep[] | undefined {
  const requestsOf = Map.groupBy(requests, (request) => request.workload)
  const rebuilt: MeasuredStep[] = []
  for (const [workload, own] of Map.groupBy(steps, (step) => step.workload)) {
    const runs = reconstructRun(own, requestsOf.get(workload) ?? [])
    if (runs === undefined) return undefined
    rebuilt.push(...runs)
  }
  return rebuilt
}

function reconstructRun(
  steps: readonly MeasuredStep[],
  requests: readonly MeasuredRequest[],
): readonly MeasuredStep[] | undefined {
  const decoding: { knownTokens: number; stepsLeft: number }[] = []
  let request = 0
  let computedTokens = 0
  const rebuilt: MeasuredStep[] = []
  for (const step of steps) {
    const contextSum = decoding.reduce((sum, member) => sum + member.knownTokens, 0)
    if (decoding.length !== step.load.decodeCount || contextSum !== step.load.contextSum) return undefined
    const contextMax = decoding.reduce((max, member) => Math.max(max, member.knownTokens), 0)
    for (const member of decoding) {
      member.knownTokens++
      member.stepsLeft--
    }
    for (let i = decoding.length - 1; i >= 0; i--) if (decoding[i]?.stepsLeft === 0) decoding.splice(i, 1)

    let chunkPairs = 0
    let contextPairs = 0
    for (let left = step.load.prefillTokens; left > 0; ) {
      const next = requests[request]
      if (next === undefined) return undefined
      const tokens = Math.min(left, next.promptTokens - computedTokens)
      chunkPairs += (tokens * tokens) / 2
      contextPairs += tokens * computedTokens
      left -= tokens
      computedTokens += tokens
      if (computedTokens < next.promptTokens) continue
      request++
      computedTokens = 0
      if (next.outputTokens > 1) decoding.push({ knownTokens: next.promptTokens + 1, stepsLeft: next.outputTokens - 1 })
    }
    rebuilt.push({ ...step, load: { ...step.load, contextMax, chunkPairs, contextPairs } })
  }
  return rebuilt
}
