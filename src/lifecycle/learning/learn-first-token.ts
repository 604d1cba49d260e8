import type { Calibration } from '../../policy/admission/calibration.ts'
import type { Ticket } from '../ticket.ts'

/** Its first token has come: was that when it was promised? The rest is learned when it ends (`learn.ts`). */
export function learnFirstToken(calibration: Calibration, ticket: Ticket): void {
  const { predicted, patience, plan, poolId, admittedAt, firstTokenAt, request } = ticket
  if (predicted === undefined || patience === undefined || plan === undefined) return
  if (poolId === undefined || admittedAt === undefined || firstTokenAt === undefined) return
  calibration.begun(firstTokenAt, {
    poolId,
    sloName: request.slo.name,
    promptTokens: plan.estimate.promptTokens,
    predicted,
    patience,
    ttftUs: firstTokenAt - admittedAt,
  })
}
