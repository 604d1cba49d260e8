import type { Release } from '../domain/fleet.ts'
import type { Policies } from './policies.ts'

/**
 * Which release of a model does a request get? Asked before admission: what is planned, predicted and queued for is the
 * chosen release's. A model without a rollout has one answer, its first release.
 */
export type ReleaseOf = (model: string) => Release | undefined

export function chooseRelease(policies: Policies, model: string): Release | undefined {
  const first = policies.models.get(model)?.releases[0]
  return first === undefined ? undefined : policies.releases.get(first)
}
