import type { Release } from '../../domain/fleet.ts'
import type { Request } from '../../domain/request.ts'
import type { Policies } from '../policies.ts'

/**
 * Which release of a model does a request get? Asked before admission: what is planned, predicted and queued for is the
 * chosen release's. Flags and the sticky split decide (`policy/rollout`); where the chosen release has no healthy
 * replica another one answers, but never one that was rolled back. A model without a rollout gives its first release.
 */
export interface PickedRelease {
  readonly release: Release
  /** Undefined where there was nothing to choose. */
  readonly because: string | undefined
}

export function pickRelease(policies: Policies, request: Request, model: string): PickedRelease | undefined {
  const { errand } = request
  const wanted =
    errand === undefined ? choiceOf(policies, request, model) : ownChoice(policies, errand.releaseId, model)
  if (wanted === undefined || errand !== undefined || isHealthy(policies, wanted.release.id)) return wanted
  const other = othersOf(policies, model, wanted.release.id).find((id) => isHealthy(policies, id))
  const release = other === undefined ? undefined : policies.releases.get(other)
  if (release === undefined) return wanted
  return { release, because: `${wanted.release.id} has no healthy replica` }
}

/** The platform's own errands name their release: they are about it. */
function ownChoice(policies: Policies, releaseId: string, model: string): PickedRelease | undefined {
  const release = policies.releases.get(releaseId)
  return release?.model === model ? { release, because: 'an errand' } : undefined
}

function choiceOf(policies: Policies, request: Request, model: string): PickedRelease | undefined {
  const rollout = policies.rollouts.get(model)
  const choice = rollout?.choose({
    tenantId: request.tenant.id,
    keyId: request.key.id,
    session: request.sessionHash === undefined ? undefined : String(request.sessionHash),
    headers: request.flags ?? NO_FLAGS,
  })
  const id = choice?.release ?? policies.models.get(model)?.releases[0]
  const release = id === undefined ? undefined : policies.releases.get(id)
  if (release === undefined) return undefined
  return { release, because: choice?.because === 'only release' ? undefined : choice?.because }
}

const NO_FLAGS: Readonly<Record<string, string>> = {}

/** Stable first: what was good last is the best guess. */
function othersOf(policies: Policies, model: string, except: string): readonly string[] {
  const rollout = policies.rollouts.get(model)
  const all = policies.models.get(model)?.releases ?? []
  const first = rollout === undefined ? [] : [rollout.serving, rollout.stable]
  return [...first, ...all].filter((id) => id !== except && rollout?.isRolledBack(id) !== true)
}

export function isHealthy(policies: Policies, releaseId: string): boolean {
  const pools = policies.poolsByRelease.get(releaseId)
  return pools?.some(({ pool }) => (policies.dispatcher.poolFacts(pool.id)?.readyReplicaCount ?? 0) > 0) ?? false
}

/** Where a ticket whose attempt on the canary came to nothing goes: its user shall see none of it. */
export function shelterOf(policies: Policies, releaseId: string, model: string): string | undefined {
  const rollout = policies.rollouts.get(model)
  if (rollout !== undefined && releaseId === rollout.canary && releaseId !== rollout.serving) {
    if (isHealthy(policies, rollout.stable)) return rollout.stable
  }
  if (isHealthy(policies, releaseId)) return undefined
  return othersOf(policies, model, releaseId).find((id) => isHealthy(policies, id))
}
