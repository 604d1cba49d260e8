import type { Model } from '../../domain/fleet.ts'
import type { Refusal } from '../../domain/outcome.ts'
import { FULL_RUNG, type Plan } from '../../domain/plan.ts'
import { promptTokensOf, type Request } from '../../domain/request.ts'

/**
 * What exactly would we run? First version: the request as it was asked, if it fits into the model's context.
 *
 * Example: 900 prompt tokens and max_tokens 200 on a model of 1,024: there is room for 124 output tokens.
 */
export type Planned =
  | { readonly kind: 'planned'; readonly plan: Plan }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** An output token costs an engine about as much as four input tokens. */
const OUTPUT_WEIGHT = 4

export function makePlan(request: Request, model: Model): Planned {
  const promptTokens = promptTokensOf(request)
  const room = model.contextTokensMax - promptTokens
  if (room < 1) {
    const because = `The prompt has about ${promptTokens} tokens, but ${model.name} takes at most ${model.contextTokensMax} with the answer.`
    return {
      kind: 'refused',
      refusal: { code: 'context-too-long', because, blame: 'request', retryAfterUs: undefined },
    }
  }
  const outputTokensMax = Math.min(request.outputTokensMax ?? model.outputTokensDefault, room)
  const outputTokens = outputTokensMax * request.choiceCount
  const plan: Plan = {
    rung: FULL_RUNG,
    model: model.name,
    segments: request.segments,
    keptSegments: request.segments.map((_, index) => index),
    outputTokensMax,
    estimate: {
      promptTokens,
      cachedTokens: 0,
      outputTokens,
      outputTokensHigh: outputTokens,
      cost: promptTokens + OUTPUT_WEIGHT * outputTokens,
      engineUs: 0,
    },
  }
  return { kind: 'planned', plan }
}
