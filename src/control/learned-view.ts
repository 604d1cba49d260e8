import type { AdminLearned, AdminLearnedReplica } from '../gateway/fleet-admin.ts'
import type { PoolPolicies } from '../lifecycle/fleet/pool-policies.ts'
import { TWIN_DEFAULTS } from '../policy/twin/engine-twin.ts'
import { READ_KNOT } from '../policy/twin/twin-prior.ts'
import type { LearnedReplica } from '../policy/twin/twins.ts'

/** What was learned of a pool's engines, in the admin API's words. */
export function learnedView({ pool, twins }: PoolPolicies): AdminLearned {
  const replicas = twins === undefined ? [] : pool.replicas.map(({ id }) => replicaView(id, twins.of(id)))
  return { pool: pool.id, isLearned: twins !== undefined, replicas }
}

function replicaView(id: string, { twin, ceiling, kv }: LearnedReplica): AdminLearnedReplica {
  const { isTrusted, rows, changes, prior, decode, read, tokenError, firstTokenError, sequencesSeen } = twin.view()
  const [baseUs, perSequenceUs, perContextTokenUs, perPromptTokenUs] = decode as Four
  const [readBaseUs, perTokenUs, perTokenBeyondUs, perPairUs] = read as Four
  return {
    id,
    isTrusted,
    rows,
    changes,
    prior,
    step: { baseUs, perSequenceUs, perContextTokenUs, perPromptTokenUs },
    firstToken: { baseUs: readBaseUs, knotTokens: READ_KNOT, perTokenUs, perTokenBeyondUs, perPairUs },
    tokenBudget: twin.tokenBudget,
    tokenError: tokenError ?? null,
    firstTokenError: firstTokenError ?? null,
    sequencesSeen,
    extrapolatedBeyond: Math.floor(sequencesSeen * TWIN_DEFAULTS.seenFactor),
    ceiling: { sequencesMax: ceiling.sequencesMax, because: ceiling.because },
    kv: kv.capacity ?? null,
  }
}

type Four = [number, number, number, number]
