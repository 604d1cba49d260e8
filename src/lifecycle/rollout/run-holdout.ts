import { Rng } from '../../base/rng.ts'
import { estimateTokens } from '../../policy/planning/estimate.ts'
import type { Holdout, HoldoutItem } from '../../policy/rollout/holdout.ts'
import type { ModelRollout } from '../../policy/rollout/model-rollout.ts'
import { AnswerText } from '../answers/answer-text.ts'
import type { Platform } from '../platform.ts'
import { judgingOf, recordRolloutChange } from './change-rollout.ts'
import { type ErrandRequest, errandTerms, hasLeftoverRoom } from './errands.ts'
import { runErrand, type ServeRequest } from './run-errand.ts'

/**
 * Asks what is due of every model's holdout set, of the release that serves and of the one that is tried, and tells the
 * rollout how they scored. Only onto room that is left over: an item that finds none is skipped, and the next one is
 * asked when it is due. An item counts when every release that was asked has answered.
 */
export function runHoldouts(platform: Platform, serve: ServeRequest): void {
  const { policies, world } = platform
  // One gateway asks for all of them.
  if (platform.isDraining || world.leadership.role().kind !== 'leads') return
  for (const [model, holdout] of policies.holdouts) {
    const rollout = policies.rollouts.get(model)
    if (rollout === undefined) continue
    for (let item = holdout.begin(world.clock.now()); item !== undefined; item = holdout.begin(world.clock.now()))
      void ask(platform, serve, { holdout, rollout, item }).finally(() => holdout.ended())
  }
}

interface Question {
  readonly holdout: Holdout
  readonly rollout: ModelRollout
  readonly item: HoldoutItem
}

async function ask(platform: Platform, serve: ServeRequest, { holdout, rollout, item }: Question): Promise<void> {
  const { world, policies } = platform
  const { serving, judged } = rollout
  const releases = judged === undefined ? [serving] : [serving, judged]
  const nth = holdout.askedCount
  if (!releases.every((releaseId) => hasLeftoverRoom(policies, releaseId))) return
  try {
    const scores = await Promise.all(
      releases.map((releaseId) => scoreOf(platform, serve, { holdout, rollout, item, nth }, releaseId)),
    )
    const [score, canaryScore] = scores
    if (score === undefined || scores.length < releases.length || scores.includes(undefined)) return
    // The canary may have been promoted or rolled back meanwhile.
    const isStillTried = judged !== undefined && rollout.judged === judged
    const change = rollout.observeHoldout(
      world.clock.now(),
      item.id,
      { score, canaryScore: isStillTried ? canaryScore : undefined },
      judgingOf(platform),
    )
    if (change !== undefined) recordRolloutChange(platform, change)
  } catch (error) {
    const because = String(error)
    world.journal.record({ kind: 'fault-seen', at: world.clock.now(), where: 'holdout', because, ticketId: undefined })
  }
}

async function scoreOf(
  platform: Platform,
  serve: ServeRequest,
  { holdout, rollout, item, nth }: Question & { readonly nth: number },
  releaseId: string,
): Promise<number | undefined> {
  const { clock, journal } = platform.world
  const { model } = rollout.settings
  const answer = new AnswerText()
  const request = requestOf(holdout, item, { model, releaseId, nth, now: clock.now() })
  const settled = await runErrand(platform, serve, request, answer)
  if (settled.outcome !== 'completed') return undefined
  const score = holdout.score(item, answer.text)
  journal.record({ kind: 'holdout-evaluated', at: clock.now(), model, releaseId, itemId: item.id, score })
  return score
}

function requestOf(
  { options }: Holdout,
  { id, prompt }: HoldoutItem,
  {
    model,
    releaseId,
    nth,
    now,
  }: { readonly model: string; readonly releaseId: string; readonly nth: number; readonly now: number },
) {
  const errand = { kind: 'holdout', releaseId, of: id } as const
  const messages = [{ role: 'user', content: prompt }]
  const max_tokens = options.outputTokensMax
  const request: ErrandRequest = {
    id: `holdout~${releaseId}~${id}~${nth}`,
    kind: 'chat',
    model,
    segments: [{ role: 'user', tokens: estimateTokens(prompt, Rng.stream(0, id)) }],
    isEstimated: true,
    prefixHashes: [],
    outputTokensMax: options.outputTokensMax,
    choiceCount: 1,
    isStreamed: true,
    text: { body: { model, messages, max_tokens, temperature: 0, stream: true } },
    ...errandTerms(errand, now),
  }
  return request
}
