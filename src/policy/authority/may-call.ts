import type { CallRoute, KeyTerms } from '../../domain/key-terms.ts'
import type { Band } from '../../domain/tenant.ts'
import { type ClientAddress, type ClientRange, isInRange } from './client-range.ts'

/**
 * May a key with these terms make this call?
 *
 * The parts that a request must meet, in the order in which they are known: from where it comes, whether the key infers
 * at all, by which route, for which model, in which band. Limits are the budgets' business, times the finder's.
 *
 * A client whose address is not known is in no range. Example: terms with `clientRanges: ['10.0.0.0/8']` refuse a call
 * from 203.0.113.9 by the part `clientRanges`; terms without ranges allow it.
 */
export interface KeyCall {
  readonly address: ClientAddress | undefined
  /** Absent where no model is asked and nothing is stored: only the address counts then. */
  readonly route?: CallRoute
  /** Public name of the model; absent where a route has none. */
  readonly model?: string
  readonly band?: Band
}

/** The part of the terms that forbids the call. */
export type CallDenial = 'clientRanges' | 'canInfer' | 'routes' | 'models' | 'bands'

export function callDenial(
  { terms, ranges }: { readonly terms: KeyTerms; readonly ranges: readonly ClientRange[] | undefined },
  { address, route, model, band }: KeyCall,
): CallDenial | undefined {
  if (ranges !== undefined && !ranges.some((range) => address !== undefined && isInRange(range, address))) {
    return 'clientRanges'
  }
  if (route === undefined) return undefined
  if (terms.canInfer === false) return 'canInfer'
  if (terms.routes?.includes(route) === false) return 'routes'
  if (model !== undefined && terms.models?.includes(model) === false) return 'models'
  return band !== undefined && terms.bands?.includes(band) === false ? 'bands' : undefined
}
