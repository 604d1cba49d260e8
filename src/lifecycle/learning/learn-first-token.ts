import type { Instant } from '../../base/clock.ts'
import type { Calibration } from '../../policy/admission/calibration.ts'
import type { Attempt } from '../ticket.ts'

/** Calibration hears when the first token came, against when it was promised; `learn.ts` tells it the ending. */
export function learnFirstToken(calibration: Calibration, attempt: Attempt, firstTokenAt: Instant): void {
  const { ticket, plan, admitted } = attempt
  const { predicted, patience, poolId } = admitted
  // Several tokens in one piece came later than the first of them, and say nothing of first tokens.
  if (predicted === undefined || (!attempt.isTelling && attempt.tokensPerChoice > 1)) return
  calibration.begun(firstTokenAt, {
    poolId,
    sloName: ticket.request.slo.name,
    promptTokens: plan.estimate.promptTokens,
    predicted,
    patience,
    ttftUs: firstTokenAt - admitted.at,
  })
}

/** So does the twin of the replica. A whole answer in one piece does not say when its first token came. */
export function teachFirstToken(attempt: Attempt, firstTokenAt: Instant): void {
  const { lesson, firstTokenExpectedUs, tokensPerChoice } = attempt
  if (attempt.isTelling) lesson?.begun(firstTokenAt, tokensPerChoice, firstTokenExpectedUs)
}
