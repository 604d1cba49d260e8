import type { Allowance, Band } from './tenant.ts'
import { TRANSIT_ROUTES } from './transit.ts'

/**
 * Terms are what a key may do. An org and a tenant have terms too: they bound those of every key below. A part that is
 * absent is as the parent's; an empty list allows nothing. Instants are milliseconds since 1970, because terms outlive
 * the process.
 */
export interface KeyTerms {
  readonly notBeforeAtMs?: number
  /** The first instant at which the terms do not hold any more. */
  readonly expiresAtMs?: number
  /** Public names of models. */
  readonly models?: readonly string[]
  readonly routes?: readonly CallRoute[]
  readonly bands?: readonly Band[]
  /** Client addresses, as `10.0.0.0/8` or `2001:db8::/32`. */
  readonly clientRanges?: readonly string[]
  /** Limits. Each level also has a budget of its own: a key without limits still spends its tenant's. */
  readonly allowance?: Allowance
  /** Whether requests to models are allowed. */
  readonly canInfer?: boolean
  /** Whether the admin API is allowed, as far as the key's role goes. On a key, absent is false. */
  readonly canManage?: boolean
}

/** A change of terms: null sets a part back to the parent's, an absent part stays as it is. */
export type TermsPatch = { readonly [Part in keyof KeyTerms]?: KeyTerms[Part] | null }

/** Groups of endpoints that a key may be limited to. */
export const CALL_ROUTES = [
  'chat',
  'completions',
  'responses',
  'messages',
  'embeddings',
  'moderations',
  'open-inference',
  'models',
  'files',
  'batches',
  'vector-stores',
  ...TRANSIT_ROUTES,
] as const

export type CallRoute = (typeof CALL_ROUTES)[number]

/** One secret of a key. Only its hash is known here. */
export interface KeySecret {
  /** SHA-256 of the whole secret as the client sends it, in lower-case hexadecimal without a prefix. */
  readonly hash: string
  readonly createdAtMs: number
  /** End of the grace that a rotation gave this secret; absent on the newest secret. */
  readonly endsAtMs?: number
  /** As the store has it; `policy/authority/secret-uses.ts` knows of later uses. */
  readonly lastUsedAtMs?: number
}

/** Live secrets of one key at most: the new one, and the one that it replaces. */
export const LIVE_SECRETS_MAX = 2

/** Longest grace of a replaced secret: a week is enough to roll out a new one, and short enough to be a rotation. */
export const GRACE_MS_MAX = 7 * 24 * 3_600_000
