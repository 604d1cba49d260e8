import { assert } from '../../base/assert.ts'
import type { Passage } from '../../domain/corpus.ts'
import type { EngineSpeed } from '../../domain/engine-speed.ts'
import type { Model, Release } from '../../domain/fleet.ts'
import { FULL_RUNG, type Plan } from '../../domain/plan.ts'
import { isGenerative, promptTokensOf, type Request } from '../../domain/request.ts'
import type { RungTerms } from '../../domain/rung.ts'
import { engineUs, weightedTokens } from './cost.ts'
import type { OutputPrediction } from './output-length.ts'
import { fitPassages, passageRoom, passageTokens } from './passage-room.ts'
import { leastTokens } from './size-doubt.ts'
import { trimContext } from './trim-context.ts'

/**
 * What exactly would we run?
 *
 * A request on a rung: the model or its smaller fallback, in the release that was chosen for this request, the segments
 * that are kept, how long an answer may get, and what all that is predicted to cost. Making a plan changes nothing and costs about a microsecond, so admission makes
 * one per rung until one fits. What the client asked for is the upper bound of everything: no rung ever adds.
 *
 * The prompt must leave room for at least one token in the model's context window. A longer one is trimmed only where
 * the rung trims anyway; on the full rung it is the client's mistake (`context-length-exceeded`), not ours to hide. Only a
 * prompt whose tokens were counted is refused for that. One that was estimated may be shorter than it looks: it is
 * planned as filling the window, asks for a short answer at least, and the engine decides.
 *
 * Two numbers bound an answer. What is *sent* is the bound of the client, the rung or the operator, or none at all. What is
 * *planned* with is the bound that is sent, or else the P90 of what such answers had: room for passages is kept beside it,
 * and answers that pass it are charged as they grow.
 *
 * A request whose answer must end whole (tools, JSON) is never capped by a rung, and is judged at its full length: half a
 * tool call costs as much as half an answer and is worth nothing.
 *
 * It does not choose the rung (ladder, admission) nor the replica (routing). Passages are expected until they are found;
 * then the plan is made again with them.
 *
 * Example: system 200, six turns of 300 tokens each, max_tokens 1,000, on a rung that keeps half of the context and
 * caps answers at 256: keeps the system prompt and the last two turns (200 + 600 ≤ 1,000), 256 output tokens at most;
 * with a history of P50 120: cost 800 + 4 · 120 = 1,280 instead of 2,000 + 480 = 2,480.
 */
export interface PlanningFacts {
  readonly model: (name: string) => Model | undefined
  /** The release of this model that the request gets; known for every known model. */
  readonly releaseOf: (model: string, request: Request) => Release | undefined
  readonly speedOf: (releaseId: string) => EngineSpeed
  /** Tokens of that model's tokenizer: counts as they are, estimates times the tenant's ratio (`TenantRatios`). */
  readonly correctTokens: (request: Request, model: string, tokens: number) => number
  /** Per choice, capped: `OutputLengths.predict`. */
  readonly predictOutput: (request: Request, capTokens: number) => OutputPrediction
  /** Leading prompt tokens that an engine of this release probably holds; 0 when nobody knows. */
  readonly cachedTokensOf: (releaseId: string, request: Request) => number
  readonly outputWeight: number
}

/**
 * Answer tokens that a prompt may ask for whose estimate leaves less: most answers are shorter (Azure's P75 is about 250),
 * and an estimate that is a little too long must not cut an answer to one token.
 */
const DOUBTFUL_ROOM_TOKENS = 256

/** Tokens that an answer without a bound is planned with until its kind is known: what Spillway used to send as its bound. */
const UNBOUNDED_TOKENS = 1_024

export type Planned =
  | { readonly kind: 'planned'; readonly plan: Plan }
  | {
      readonly kind: 'unplannable'
      readonly code: 'model-not-found' | 'context-length-exceeded'
      readonly because: string
    }

/** `release` is the one already chosen for this request, of whichever model; other models' releases are asked for. */
export function makePlan(
  request: Request,
  rung: RungTerms,
  facts: PlanningFacts,
  release?: Release,
  found?: readonly Passage[],
): Planned {
  const isFallbackUsed = rung.isFallbackUsed && request.kind !== 'transit'
  const served = servedBy(request, isFallbackUsed, facts, release)
  if (served === undefined) {
    return { kind: 'unplannable', code: 'model-not-found', because: `no model is called ${request.model}` }
  }
  if (!isGenerative(request.kind)) return planInOneGo(request, rung, facts, served)
  return planGeneration(request, rung, facts, served, found)
}

function planGeneration(
  request: Request,
  rung: RungTerms,
  facts: PlanningFacts,
  { model, release }: Served,
  found: readonly Passage[] | undefined,
): Planned {
  const kept = trimContext(request.segments, rung)
  const fixedTokens = request.fixedTokens ?? 0
  const rawTokens = kept.tokens + fixedTokens
  const correctedTokens = facts.correctTokens(request, model.name, rawTokens)
  const isEstimated = request.isEstimated === true
  // No engine reads a prompt that is longer than its window.
  const ownTokens = isEstimated ? Math.min(correctedTokens, release.contextTokensMax - 1) : correctedTokens
  const outputRoom = release.contextTokensMax - ownTokens
  if (outputRoom < 1) {
    const because = `the prompt has ${ownTokens} tokens; ${model.name} takes ${release.contextTokensMax} with the answer`
    return { kind: 'unplannable', code: 'context-length-exceeded', because }
  }
  const bounds = boundsOf(request, rung, { model, release, outputRoom })
  const { outputTokensMax } = bounds
  const output = facts.predictOutput(request, outputTokensMax)
  assert(output.tokens <= outputTokensMax, 'a prediction is capped by what the plan allows')
  const plannedTokens = plannedOf(bounds, output)

  const room = passageRoom(request, rung, outputRoom - plannedTokens)
  const passages = fitPassages(found, room)
  const promptTokens = ownTokens + passageTokens(room, passages)

  // A cached prefix ends where the first segment was dropped: what follows has moved.
  const cachedTokens = Math.min(
    facts.cachedTokensOf(release.id, request),
    facts.correctTokens(request, model.name, kept.leadingTokens + fixedTokens),
    promptTokens,
  )
  const choiceCount = request.choiceCount
  const work = { promptTokens, cachedTokens, outputTokens: output.tokens * choiceCount }
  const speed = facts.speedOf(release.id)
  const meanWork = { promptTokens, cachedTokens, outputTokens: output.tokensMean * choiceCount }
  const shareUs = speed.shareUs?.(promptTokens - cachedTokens, meanWork.outputTokens)
  return {
    kind: 'planned',
    plan: {
      rung: { name: rung.name, depth: rung.depth },
      model: model.name,
      releaseId: release.id,
      segments: kept.segments,
      keptSegments: kept.indices,
      ...bounds,
      estimate: {
        ...work,
        ...(isEstimated && {
          promptTokensMin: Math.min(ownTokens, leastTokens({ rawTokens, correctedTokens })),
        }),
        outputTokensHigh: output.tokensHigh * choiceCount,
        ...(output.source !== 'habit' && { outputTokensUnproven: plannedTokens * choiceCount }),
        meanCost: weightedTokens(meanWork, facts.outputWeight),
        ...(shareUs === undefined ? {} : { shareUs }),
        cost: weightedTokens(work, facts.outputWeight),
        engineUs: engineUs(speed, { promptTokens, cachedTokens, outputTokens: work.outputTokens, choiceCount }),
      },
      ...(room !== undefined && { passageRoom: room }),
      ...(passages !== undefined && { passages }),
    },
  }
}

interface Bounds {
  readonly outputTokensMax: number
  readonly sentTokensMax?: number
}

/**
 * The bound that the engine is told, and the most that the answer can have. A client that sets no bound, where neither rung
 * nor operator has one, is answered until the model stops or the context is full.
 */
function boundsOf(
  request: Request,
  rung: RungTerms,
  { model, release, outputRoom }: Served & { outputRoom: number },
): Bounds {
  const capTokens = request.mustEndWhole === true ? undefined : rung.outputTokensMax
  const asked = request.outputTokensMax ?? model.outputTokensDefault
  const isEstimated = request.isEstimated === true
  if (asked === undefined && capTokens === undefined) {
    // An estimated prompt may be shorter than it looks, and then leaves more.
    return { outputTokensMax: isEstimated ? release.contextTokensMax : outputRoom }
  }
  const sentTokensMax = Math.min(
    asked ?? Number.POSITIVE_INFINITY,
    capTokens ?? Number.POSITIVE_INFINITY,
    isEstimated ? Math.max(outputRoom, DOUBTFUL_ROOM_TOKENS) : outputRoom,
  )
  // Engines answer a bound of 0 with one token, or with the prompt alone: there is always something to plan for.
  return { outputTokensMax: Math.max(1, sentTokensMax), sentTokensMax }
}

/** Tokens that room is kept for, for each choice: the bound that is sent; else what such answers are known to have. */
function plannedOf({ outputTokensMax, sentTokensMax }: Bounds, { source, tokensHigh }: OutputPrediction): number {
  if (sentTokensMax !== undefined) return outputTokensMax
  return Math.min(outputTokensMax, source === 'habit' ? tokensHigh : Math.max(tokensHigh, UNBOUNDED_TOKENS))
}

/**
 * A request that is answered in one go: every segment stands for itself and must fit alone, there is nothing to trim and
 * nothing to cap. Only a smaller model can make it cheaper; without one it is on the full rung whatever the ladder says.
 */
function planInOneGo(request: Request, rung: RungTerms, facts: PlanningFacts, { model, release }: Served): Planned {
  const { segments } = request
  const longest = segments.reduce((most, { tokens }) => Math.max(most, tokens), 0)
  // The tokens of a transit are its price: they fill no window.
  if (request.kind !== 'transit' && longest > release.contextTokensMax && request.isEstimated !== true) {
    const because = `one input has ${longest} tokens; ${model.name} takes ${release.contextTokensMax}`
    return { kind: 'unplannable', code: 'context-length-exceeded', because }
  }
  const rawTokens = promptTokensOf(request)
  const promptTokens = facts.correctTokens(request, model.name, rawTokens)
  // No engine reads a transit as a prompt: its price is no time, and how long it takes nobody knows.
  const isRead = request.kind !== 'transit'
  const work = { promptTokens, cachedTokens: isRead ? 0 : promptTokens, outputTokens: 0 }
  const speed = facts.speedOf(release.id)
  const shareUs = speed.shareUs?.(isRead ? promptTokens : 0, 0)
  return {
    kind: 'planned',
    plan: {
      rung: model.name === request.model ? FULL_RUNG : { name: rung.name, depth: rung.depth },
      model: model.name,
      releaseId: release.id,
      segments,
      keptSegments: segments.map((_, index) => index),
      outputTokensMax: 0,
      estimate: {
        ...work,
        ...(request.isEstimated === true && {
          promptTokensMin: leastTokens({ rawTokens, correctedTokens: promptTokens }),
        }),
        outputTokensHigh: 0,
        ...(shareUs === undefined ? {} : { shareUs }),
        cost: weightedTokens({ ...work, cachedTokens: 0 }, facts.outputWeight),
        engineUs: engineUs(speed, { ...work, choiceCount: 1 }),
      },
    },
  }
}

interface Served {
  readonly model: Model
  readonly release: Release
}

/**
 * The model that was asked for, or its smaller fallback where the rung says so and the key may use it. Nobody knows what
 * another model would make of a transit: another voice, tokens of another tokenizer.
 */
function servedBy(
  request: Request,
  isFallbackUsed: boolean,
  facts: PlanningFacts,
  chosen: Release | undefined,
): Served | undefined {
  const asked = lookUp(request, request.model, facts, chosen)
  const fallback = asked?.release.fallback
  if (!isFallbackUsed || fallback === undefined || !mayAnswer(request, fallback)) return asked
  return lookUp(request, fallback, facts, chosen) ?? asked
}

export const mayAnswer = ({ modelsAllowed }: Request, model: string): boolean =>
  modelsAllowed === undefined || modelsAllowed.includes(model)

function lookUp(request: Request, name: string, facts: PlanningFacts, chosen: Release | undefined): Served | undefined {
  const model = facts.model(name)
  const release = chosen?.model === name ? chosen : facts.releaseOf(name, request)
  return model === undefined || release === undefined ? undefined : { model, release }
}

/** True when a deeper rung gave up nothing more for this request: trying it again would be the same question. */
export function isSameWork(a: Plan, b: Plan): boolean {
  return (
    a.releaseId === b.releaseId &&
    a.outputTokensMax === b.outputTokensMax &&
    a.keptSegments.length === b.keptSegments.length &&
    a.passageRoom?.passagesMax === b.passageRoom?.passagesMax
  )
}
