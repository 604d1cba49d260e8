import type { Moderator } from '../../lifecycle/screening-ports.ts'
import { checkModeration, moderatedInputs, moderationAnswer, moderationResult } from '../../wire/moderations.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { readJson } from '../../wire/read-body.ts'
import { collectBody } from '../collect-body.ts'
import type { Route } from '../http-server.ts'
import { answerCall, BodyFault, type CorpusCall, type StoreDeps, tokensOfBytes } from './corpora-answer.ts'

/**
 * POST /v1/moderations, answered by the embedded models: no engine is asked, and the text goes nowhere else. The call
 * spends the caller's budgets by its bytes, as texts that are stored do.
 */
export interface ModerationDeps extends StoreDeps {
  readonly moderator: Moderator
}

export function moderationsRoute(deps: ModerationDeps): Route {
  return {
    method: 'POST',
    path: '/v1/moderations',
    handle: (exchange) =>
      answerCall(deps, exchange, { route: 'moderations', hasText: true }, (call) => moderate(deps, call)),
  }
}

async function moderate({ moderator, bodyBytesMax }: ModerationDeps, { exchange, hold }: CorpusCall): Promise<unknown> {
  const body = await collectBody(exchange, bodyBytesMax)
  if (body.kind === 'gone') throw new BodyFault(GONE)
  const json = body.kind === 'fault' ? body : readJson(body.bytes)
  const checked = json.kind === 'fault' ? json : checkModeration(json.value)
  if (checked.kind === 'fault') throw new BodyFault(checked.fault)
  const inputs = moderatedInputs(checked.value)
  hold(tokensOfBytes(inputs.flat().reduce((sum, text) => sum + Buffer.byteLength(text), 0)))
  const results: object[] = []
  for (const texts of inputs) {
    const findings = []
    for (const text of texts) {
      if (exchange.res.destroyed) throw new BodyFault(GONE, true)
      findings.push(await moderator.harmsOf(text))
    }
    results.push(moderationResult(findings))
  }
  return moderationAnswer(exchange.id, checked.value, results)
}

const GONE = invalidRequest('The client has gone.', null)
