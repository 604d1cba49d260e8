import { unreachable } from '../../base/assert.ts'
import { AIMD_LIMIT_DEFAULTS, AimdLimit, type AimdLimitOptions } from './aimd.ts'
import { FIXED_LIMIT_DEFAULTS, FixedLimit } from './fixed.ts'
import { GRADIENT_LIMIT_DEFAULTS, GradientLimit, type GradientLimitOptions } from './gradient.ts'
import type { Limit } from './limit.ts'
import { ReportedLimit, type ReportedLimitParts } from './reported.ts'

/** What configuration says about a replica's limit; what it does not say has the default beside the limit. */
export type LimitSpec =
  | { readonly kind: 'fixed'; readonly sequencesMax?: number }
  | ({ readonly kind: 'aimd' } & Partial<AimdLimitOptions>)
  | ({ readonly kind: 'gradient' } & Partial<GradientLimitOptions>)
  | ({ readonly kind: 'reported' } & ReportedLimitParts)

/** A limit of its own for one replica. A new kind is a file beside this and a line here. */
export function makeLimit(spec: LimitSpec): Limit {
  switch (spec.kind) {
    case 'fixed':
      return new FixedLimit({ ...FIXED_LIMIT_DEFAULTS, ...spec })
    case 'aimd':
      return new AimdLimit({ ...AIMD_LIMIT_DEFAULTS, ...spec })
    case 'gradient':
      return new GradientLimit({ ...GRADIENT_LIMIT_DEFAULTS, ...spec })
    case 'reported':
      return new ReportedLimit(spec)
    default:
      return unreachable(spec)
  }
}
