import { promptTokensOf, type Request } from '../domain/request.ts'
import { mayExceed } from '../policy/planning/size-doubt.ts'
import { correctTokens } from './planning-facts.ts'
import type { Platform } from './platform.ts'

/**
 * Is a bound near enough for the prompt's true size to matter? Asked before a request is served, of every prompt whose
 * tokens are estimated: the bounds are the context window of each release of its model, the KV of each pool that could
 * run one, and the largest budget that its tenant and key ever have at once.
 */
export function isSizeInDoubt({ policies }: Platform, request: Request): boolean {
  const rawTokens = promptTokensOf(request)
  const size = { rawTokens, correctedTokens: correctTokens(policies, request, request.model, rawTokens) }
  if (mayExceed(size, policies.budgets.tokensMaxOf(policies.standings.of(request).scopes))) return true
  for (const releaseId of policies.models.get(request.model)?.releases ?? []) {
    const release = policies.releases.get(releaseId)
    if (release !== undefined && mayExceed(size, release.contextTokensMax)) return true
    for (const { kvTokensMax } of policies.poolsByRelease.get(releaseId) ?? []) {
      if (mayExceed(size, kvTokensMax)) return true
    }
  }
  return false
}
