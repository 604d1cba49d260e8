import type { AuditedScreens } from './audited-screens.ts'

/**
 * One event of the audit: who did or decided what, when, to whom, and why. Never text of prompts or answers: a keyed hash
 * of the prompt stands for it. Names of people (end users, keys) are sealed with a key of their own, which can be
 * destroyed.
 */
export interface AuditEvent {
  readonly kind: AuditKind
  readonly actor: AuditActor
  readonly org?: string | undefined
  readonly tenant?: string | undefined
  /** Id of the request that the event is about. */
  readonly request?: string | undefined
  readonly model?: string | undefined
  readonly release?: string | undefined
  /** What was decided, and why. */
  readonly decision?: AuditDecision | undefined
  readonly screens?: AuditedScreens | undefined
  /** Tokens. */
  readonly usage?: { readonly prompt: number; readonly cached: number; readonly output: number } | undefined
  /** Weighted tokens of engine work, and the price in nano-dollars. */
  readonly cost?: number | undefined
  readonly price?: number | undefined
  readonly rung?: string | undefined
  /** The end user whom the client named: personal. */
  readonly user?: string | undefined
  /** Name of the key that an event is about: personal. */
  readonly key?: string | undefined
  /** The prompt, of which only a keyed hash is written. */
  readonly text?: string | undefined
  /** Further facts, without text of clients. */
  readonly detail?: Readonly<Record<string, string | number | boolean | readonly string[]>> | undefined
}

export const AUDIT_KINDS = [
  'inference.begun',
  'inference.settled',
  'screen.acted',
  'key.created',
  'key.changed',
  'key.removed',
  'key.rotated',
  'key.revoked',
  'policy.changed',
  'policy.rollout',
  'policy.rung',
  'policy.shedding',
  'budget.changed',
  'budget.marked',
  'admin.org',
  'admin.tenant',
  'admin.fleet',
  'admin.leader',
  'admin.platform',
  'config.changed',
  'data.exported',
  'data.removed',
  'erased',
  'gap',
] as const

export type AuditKind = (typeof AUDIT_KINDS)[number]

/** Who acts: a tenant's key, an operator or an org's administrator, or a part of the platform. */
export interface AuditActor {
  readonly kind: 'key' | 'admin' | 'platform'
  /** Of a key: personal. */
  readonly name: string
}

export interface AuditDecision {
  /** `completed`, `rejected`, … ; for changes, what was done. */
  readonly outcome: string
  /** Code of the refusal. */
  readonly code?: string | undefined
  readonly because: string
  /** Version of the policy that decided. */
  readonly policy?: string | undefined
}

/** What a tenant wants of the audit. */
export interface AuditTerms {
  /** No byte of an answer leaves before the decision on its request is on the disk. */
  readonly isStrict: boolean
  /** A full audit refuses the tenant's requests; otherwise they go on and the gap is recorded. */
  readonly refusesWhenFull: boolean
}
