import { writeFileSync } from 'node:fs'
import { type LearnedProfile, learnedProfileOf } from '../assembly/learned-profile.ts'
import { ConfigError } from '../config/config-error.ts'
import type { learnedView } from '../control/learned-view.ts'

/** Writes what was learned of a replica's engine as a profile. */
export function writeProfile(
  path: string,
  replica: ReturnType<typeof learnedView>['replicas'][number],
): LearnedProfile {
  const { id, prior, rows, step, firstToken, tokenBudget, kv } = replica
  const learned = learnedProfileOf({
    id,
    prior,
    rows,
    decode: [step.baseUs, step.perSequenceUs, step.perContextTokenUs, step.perPromptTokenUs],
    read: [firstToken.baseUs, firstToken.perTokenUs, firstToken.perTokenBeyondUs, firstToken.perPairUs],
    tokenBudget,
    kvTokensMax: kv?.tokensMax,
  })
  try {
    writeFileSync(path, `${JSON.stringify(learned.profile, undefined, 2)}\n`)
  } catch (error) {
    throw new ConfigError([`${path} cannot be written (${(error as NodeJS.ErrnoException).code}). Give another path.`])
  }
  return learned
}
