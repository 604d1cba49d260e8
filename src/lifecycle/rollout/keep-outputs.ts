import { secondsToUs } from '../../base/clock.ts'
import type { AnswerDifference, Settled } from '../../domain/entry.ts'
import type { KeptOutput } from '../../domain/output-pair.ts'
import type { ScreeningTerms } from '../../domain/screening.ts'
import { compareOutputs } from '../../policy/rollout/compare-outputs.ts'
import type { AnswerText } from '../answers/answer-text.ts'
import type { Platform } from '../platform.ts'
import type { Ticket } from '../ticket.ts'

/**
 * May the two answers of a shadow be looked at later? Only where the tenant's storing terms say so (`shadows`), and then
 * for operators alone. Both texts are what the tenant's own screens let out, with placeholders where only the client gets
 * values; whatever that policy is, personal data of a known form and secrets are replaced once more, and the text is cut.
 * The prompt is not kept. Runs after both answers have ended: no client waits for it.
 */

/** Characters of one answer that are kept: some seven hundred words. */
export const OUTPUT_CHARACTERS_MAX = 4_096

/** However long a tenant's answers may be stored: a release is tried for days, not for months. */
const KEPT_US_MAX = secondsToUs(7 * 86_400)

const MASKING: ScreeningTerms = {
  version: 'shadow-outputs',
  rules: (['pii', 'secrets'] as const).map((screen) => ({
    screen,
    direction: 'output',
    action: 'redact',
    onFailure: 'closed',
  })),
  hold: { kind: 'entities' },
  join: 'gate',
  isReversible: false,
  allowed: [],
  patterns: [],
  binary: 'pass',
}

export interface EndedShadow {
  readonly settled: Settled
  readonly primary: AnswerText
  readonly shadow: AnswerText
  /** Absent when one of the two answers is incomplete. */
  readonly difference: AnswerDifference | undefined
  /** Of the ring, when the copy began. */
  readonly epoch: number
}

export function keepOutputs(platform: Platform, ticket: Ticket, ended: EndedShadow): void {
  const { settled, primary, shadow, difference, epoch } = ended
  const { tenant, model, mustEndWhole } = ticket.request
  if (tenant.storing?.shadows !== true || primary.finishReason === null) return
  // A copy that found no room or was called off says nothing about its release.
  const { outcome } = settled
  if (outcome !== 'completed' && outcome !== 'blocked' && outcome !== 'failed') return
  const [first, second] = [
    outputOf(platform, primary, ticket.admitted?.plan.releaseId),
    outputOf(platform, shadow, settled.releaseId),
  ]
  if (first === undefined || second === undefined) return
  const at = platform.world.clock.now()
  const compared = difference && {
    difference: compareOutputs(
      { kept: first, whole: primary.text },
      { kept: second, whole: shadow.text },
      { difference, isStructured: mustEndWhole === true },
    ),
  }
  platform.outputs.keep(
    {
      at,
      ticketId: ticket.id,
      model,
      tenantId: tenant.id,
      orgId: tenant.orgId,
      primary: first,
      shadow: { ...second, outcome },
      ...compared,
    },
    { expiresAt: at + Math.min(KEPT_US_MAX, secondsToUs(tenant.storing.ttlS)), epoch },
  )
}

function outputOf(platform: Platform, answer: AnswerText, releaseId = ''): KeptOutput | undefined {
  const text = masked(platform, answer.text)
  return text === undefined
    ? undefined
    : { releaseId, text, length: answer.text.length, finishReason: answer.finishReason }
}

/** Undefined where nobody can screen: then nothing is kept. */
function masked(platform: Platform, text: string): string | undefined {
  const screen = platform.screenAnswer({ terms: MASKING, texts: [], found: [], unscreened: [] })
  if (screen === undefined) return undefined
  const content = text.slice(0, OUTPUT_CHARACTERS_MAX)
  const deltas = [screen.write({ tokens: 0, choices: [{ index: 0, content, finishReason: null }] })]
  // What the screen still holds of a cut text may be half of a finding, and is left out.
  if (content.length === text.length) deltas.push(screen.flush())
  const released = deltas.flatMap((delta) => delta?.choices ?? []).map((choice) => choice.content ?? '')
  return released.join('').slice(0, OUTPUT_CHARACTERS_MAX).toWellFormed()
}
