import { fnv1a32 } from '../../base/rng.ts'
import type { AnswerDifference } from '../../domain/entry.ts'

/**
 * Which requests are also shown to the new release, unseen by the client?
 *
 * A sample, chosen by the hash of the request's name, so that every process agrees; and only onto room that nobody
 * wants: an idle slot at the shadow's pool, nothing queued before it, and not more than `inFlightMax` copies at once. A
 * copy is a second ticket in band `offline`, charged to the platform, whose answer nobody waits for: it can neither
 * delay nor fail the primary, and it is dropped rather than queued.
 *
 * Deliberately not: no request with tools (their effects would happen twice in the eyes of whoever runs them), nothing
 * of a tenant that forbids it. Example: ratio 0.1, 3 copies in flight of 8, idle room: one request in ten is mirrored.
 */
export const SHADOW_DEFAULTS = {
  inFlightMax: 8,
}

export interface ShadowRule {
  readonly release: string
  readonly ratio: number
  readonly inFlightMax: number
  readonly excludedTenantIds: readonly string[]
}

export interface ShadowFacts {
  readonly ticketId: string
  readonly tenantId: string
  readonly hasTools: boolean
  /** Copies of this rule that run now. */
  readonly inFlight: number
  /** Whether the shadow's pool could take one more at once, with nobody waiting. */
  readonly hasLeftoverRoom: boolean
}

export type ShadowDecision =
  | { readonly kind: 'mirror'; readonly release: string; readonly because: string }
  | { readonly kind: 'skip'; readonly because: string }

export function decideShadow(rule: ShadowRule, facts: ShadowFacts): ShadowDecision {
  const skip = (because: string): ShadowDecision => ({ kind: 'skip', because })
  if ((fnv1a32(`${rule.release}\n${facts.ticketId}`) >>> 8) / 2 ** 24 >= rule.ratio) return skip('not in the sample')
  if (facts.hasTools) return skip('it has tools')
  if (rule.excludedTenantIds.includes(facts.tenantId)) return skip('its tenant is excluded')
  if (facts.inFlight >= rule.inFlightMax) return skip('enough copies run already')
  if (!facts.hasLeftoverRoom) return skip('there is no room left over')
  return { kind: 'mirror', release: rule.release, because: 'in the sample, and there is room left over' }
}

/** Longer answers are compared by their beginnings: 64 K characters tell enough. */
const COMPARED_CHARS_MAX = 65_536

/** How a copy's answer differs from the one that the client got: numbers for the journal, never the text. */
export function compareAnswers(primary: string, shadow: string): AnswerDifference {
  const a = primary.slice(0, COMPARED_CHARS_MAX)
  const b = shadow.slice(0, COMPARED_CHARS_MAX)
  const shorter = Math.min(a.length, b.length)
  let same = 0
  while (same < shorter && a.charCodeAt(same) === b.charCodeAt(same)) same++
  return {
    isEqual: primary === shadow,
    samePrefixRatio: shorter === 0 ? Number(a.length === b.length) : same / shorter,
    lengthRatio:
      primary.length === 0 ? (shadow.length === 0 ? 1 : Number.POSITIVE_INFINITY) : shadow.length / primary.length,
    sameWordsRatio: sameWords(a, b),
  }
}

function sameWords(a: string, b: string): number {
  const ofA = new Set(a.toLowerCase().match(/[\p{L}\p{N}]+/gu))
  const ofB = new Set(b.toLowerCase().match(/[\p{L}\p{N}]+/gu))
  const either = new Set([...ofA, ...ofB]).size
  return either === 0 ? 1 : (ofA.size + ofB.size - either) / either
}
