import type { AuditEvent, AuditKind } from '../domain/audit-event.ts'
import type { Entry } from '../domain/entry.ts'
import type { TenancyChanged } from '../domain/platform-entry.ts'

/**
 * Which entries of the journal are events of the audit, beside requests: what administrators changed, what the platform
 * decided by itself about many requests at once, and what was removed. Reports and measurements are not.
 */
type EntryOf<Kind extends Entry['kind']> = Extract<Entry, { readonly kind: Kind }>

type Readers = { readonly [Kind in Entry['kind']]?: (entry: EntryOf<Kind>) => AuditEvent | undefined }

const platform = (name: string) => ({ kind: 'platform', name }) as const
/** The platform's own parts act under names that no administrator has. */
const OWN_NAMES = new Set(['judge', 'drift', 'config', 'discovery', 'file', 'registry', 'platform'])
const actorOf = (by: string) => (OWN_NAMES.has(by) ? platform(by) : ({ kind: 'admin', name: by } as const))

const READERS: Readers = {
  'tenancy-changed': (entry) => {
    const { edit, level, name, orgId, tenantId, changed, by, because } = entry
    return {
      kind: tenancyKind(entry),
      actor: actorOf(by),
      org: orgId,
      tenant: level === 'tenant' ? name : tenantId,
      decision: { outcome: edit, because },
      ...(level === 'key' && { key: name }),
      ...(changed !== undefined && changed.length > 0 && { detail: { changed } }),
    }
  },
  'config-changed': ({ by, because, summary, version }) => ({
    kind: 'config.changed',
    actor: actorOf(by),
    decision: { outcome: summary, because },
    detail: { version },
  }),
  'fleet-changed': ({ what, name, poolId, by, because }) => ({
    kind: 'admin.fleet',
    actor: actorOf(by),
    decision: { outcome: what, because },
    detail: { name, ...(poolId !== undefined && { pool: poolId }) },
  }),
  'rollout-changed': ({ model, change, from, to, step, percent, by, because }) => ({
    kind: 'policy.rollout',
    actor: actorOf(by),
    model,
    release: to,
    decision: { outcome: change, because },
    detail: { from, step, percent },
  }),
  'rung-changed': ({ tenantId, poolId, from, to, depth, because }) => ({
    kind: 'policy.rung',
    actor: platform('ladder'),
    tenant: tenantId,
    decision: { outcome: to, because },
    rung: to,
    detail: { pool: poolId, from, depth },
  }),
  'offline-shedding-changed': ({ poolId, isShed, because }) => ({
    kind: 'policy.shedding',
    actor: platform('ladder'),
    decision: { outcome: isShed ? 'began' : 'ended', because },
    detail: { pool: poolId },
  }),
  'budget-marked': ({ id, scope, scopeId, period, isHard, mark, usedNano, usedTokens }) => ({
    kind: 'budget.marked',
    actor: platform('budgets'),
    ...scoped(scope, scopeId),
    decision: { outcome: `${Math.round(mark * 100)} %`, because: `${period} budget of the ${scope}` },
    detail: { mark: id.replaceAll(scopeId, ''), isHard, usedNano, usedTokens },
  }),
  'abuse-noticed': ({ tenantId, keyId, abuse, response, count, pauseUs, because }) => ({
    kind: 'screen.acted',
    actor: platform('abuse'),
    tenant: tenantId,
    decision: { outcome: response, because },
    key: keyId,
    detail: { abuse, count, pauseMs: Math.round(pauseUs / 1_000) },
  }),
  'archive-erased': ({ because, count }) => ({
    kind: 'data.removed',
    actor: platform('archive'),
    decision: { outcome: 'removed', because },
    detail: { answers: count },
  }),
  'tenant-paused': ({ tenantId, isPaused, by, because }) => ({
    kind: 'admin.tenant',
    actor: actorOf(by),
    tenant: tenantId,
    decision: { outcome: isPaused ? 'paused' : 'goes on', because },
  }),
  'mode-changed': ({ mode, by, because }) => ({
    kind: 'policy.changed',
    actor: actorOf(by),
    decision: { outcome: mode, because },
  }),
  'leader-changed': ({ name, role, because }) => ({
    kind: 'admin.leader',
    actor: platform('leadership'),
    decision: { outcome: role, because },
    detail: { duty: name },
  }),
  'platform-changed': ({ state, because }) => ({
    kind: 'admin.platform',
    actor: platform('server'),
    decision: { outcome: state, because },
  }),
}

/** The kinds of entries that the audit takes. */
export const ENTRY_KINDS: ReadonlySet<Entry['kind']> = new Set(Object.keys(READERS) as Entry['kind'][])

/** Undefined for entries that are none of the audit's business. */
export function entryEvent(entry: Entry): AuditEvent | undefined {
  const read = READERS[entry.kind] as ((entry: Entry) => AuditEvent | undefined) | undefined
  return read?.(entry)
}

const KEY_KINDS: Readonly<Record<string, AuditKind>> = {
  'create-key': 'key.created',
  'change-key': 'key.changed',
  'remove-key': 'key.removed',
  'rotate-key': 'key.rotated',
  'revoke-secret': 'key.revoked',
}

function tenancyKind({ edit, level, changed = [] }: TenancyChanged): AuditKind {
  const isOnly = (part: string): boolean => changed.length > 0 && changed.every((each) => each.startsWith(part))
  if (isOnly('terms.allowance')) return 'budget.changed'
  if (changed.includes('screening')) return 'policy.changed'
  if (level === 'key') return KEY_KINDS[edit] ?? 'key.changed'
  return level === 'org' ? 'admin.org' : 'admin.tenant'
}

/** Names of keys and users are sealed, in the fields that are. */
function scoped(scope: 'org' | 'tenant' | 'key' | 'model' | 'user', id: string): Partial<AuditEvent> {
  const [tenant = '', rest = ''] = id.split(/\/(.*)/s)
  if (scope === 'org') return { org: id }
  if (scope === 'tenant') return { tenant: id }
  if (scope === 'key') return { key: id }
  return scope === 'model' ? { tenant, model: rest } : { tenant, user: rest }
}
