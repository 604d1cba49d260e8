import type { AuthorityHolder, AuthorityRefusal, AuthorityRule } from '../../domain/tenancy.ts'
import { ReasonBody } from '../../wire/admin.ts'
import { type Checked, makeCheck } from '../../wire/check.ts'
import {
  KeyChangeBody,
  KeyCreateBody,
  KeyRotateBody,
  OrgChangeBody,
  OrgCreateBody,
  TenantChangeBody,
  TenantCreateBody,
} from '../../wire/tenancy.ts'
import type { AdminDirectory } from '../admin-directory.ts'
import type { Exchange } from '../exchange.ts'
import type { AdminCode } from '../fleet-admin.ts'
import type { Route } from '../http-server.ts'
import type { AskedEdit, TenancyAdmin, TenancyReply, TreeLevel, TreeRecord } from '../tenancy-admin.ts'
import { type AdminAsk, adminRoute, bodyOf, refuse } from './admin.ts'

/**
 * Orgs, tenants and keys of the running platform, for operators. Every change has a reason and is stored with its author;
 * it is in force when the call returns. A new secret is in the answer once and nowhere else. What the configuration file
 * names is shown and cannot be changed here.
 */
export interface TenancyDeps {
  readonly tenancy: TenancyAdmin
  readonly keys: AdminDirectory
  readonly bodyBytesMax: number
}

const ROOT = '/admin/v1'

/** The grace of a replaced secret where the call names none: time for a rollout of the new one. */
const GRACE_MS = 24 * 3_600_000

export function tenancyRoutes({ tenancy, keys, bodyBytesMax }: TenancyDeps): Route[] {
  const on = (method: Route['method'], path: string, handle: (ask: AdminAsk) => unknown): Route =>
    adminRoute(keys, method, path, handle)
  const edited = async (
    { exchange, by }: AdminAsk,
    check: (body: unknown) => Checked<{ because: string }>,
    editOf: (body: object) => object,
  ): Promise<unknown> => {
    const body = await bodyOf(exchange, bodyBytesMax, check)
    if (body === undefined) return undefined
    return replied(exchange, await tenancy.change(by, editOf(body) as AskedEdit))
  }
  const level = (name: TreeLevel, checkCreate: Check, checkChange: Check): Route[] => [
    on('GET', `${ROOT}/${name}s`, ({ query }) => listed(tenancy, name, query)),
    on('GET', `${ROOT}/${name}s/*`, ({ exchange, rest }) => shownOr404(exchange, tenancy, name, rest)),
    on('POST', `${ROOT}/${name}s`, (ask) => edited(ask, checkCreate, (body) => ({ ...body, kind: `create-${name}` }))),
    on('PATCH', `${ROOT}/${name}s/*`, (ask) =>
      edited(ask, checkChange, (body) => ({ ...body, kind: `change-${name}`, id: ask.rest })),
    ),
  ]
  const removal = (name: 'org' | 'tenant') =>
    on('DELETE', `${ROOT}/${name}s/*`, (ask) =>
      edited(ask, checkReason, (body) => ({ ...body, kind: `remove-${name}`, id: ask.rest })),
    )
  return [
    ...level('org', makeCheck(OrgCreateBody), makeCheck(OrgChangeBody)),
    ...level('tenant', makeCheck(TenantCreateBody), makeCheck(TenantChangeBody)),
    ...level('key', makeCheck(KeyCreateBody), makeCheck(KeyChangeBody)),
    removal('org'),
    removal('tenant'),
    on('DELETE', `${ROOT}/keys/*`, (ask) => {
      const [, id, hashPrefix] = /^([^/]+)\/secrets\/([0-9a-f]{8,64})$/.exec(ask.rest) ?? []
      return edited(ask, checkReason, (body) =>
        id === undefined
          ? { ...body, kind: 'remove-key', id: ask.rest }
          : { ...body, kind: 'revoke-secret', id, hashPrefix },
      )
    }),
    on('POST', `${ROOT}/keys/*`, (ask) => {
      const [, id] = /^([^/]+)\/rotate$/.exec(ask.rest) ?? []
      if (id === undefined) return notFound(ask.exchange, 'key', ask.rest)
      return edited(ask, checkRotate, (body) => ({ graceMs: GRACE_MS, ...body, kind: 'rotate-key', id }))
    }),
    on('GET', `${ROOT}/tenancy-changes`, async ({ exchange, query }) => {
      const id = query.get('id') ?? undefined
      const changes = await tenancy.history({ id, limit: limitOf(query) })
      if ('code' in changes) return refuse(exchange, changes)
      const data = changes.map((change) => ({
        ...change,
        before: change.before === undefined ? null : shown(change.before),
        after: change.after === undefined ? null : shown(change.after),
      }))
      return { object: 'list', data }
    }),
  ]
}

type Check = (body: unknown) => Checked<{ because: string }>

const checkReason = makeCheck(ReasonBody)
const checkRotate: Check = makeCheck(KeyRotateBody)

const LIST_MAX = 1_000

const limitOf = (query: URLSearchParams): number =>
  Math.min(LIST_MAX, Math.max(1, Math.trunc(Number(query.get('limit') ?? 100)) || 100))

function listed(tenancy: TenancyAdmin, level: TreeLevel, query: URLSearchParams): object {
  const parentId = level === 'org' ? undefined : (query.get(level === 'key' ? 'tenant' : 'org') ?? undefined)
  const limit = limitOf(query)
  const after = query.get('after') ?? undefined
  const records = tenancy.list(level, { parentId, after, limit: limit + 1 })
  return { object: 'list', data: records.slice(0, limit).map(shown), has_more: records.length > limit }
}

function shownOr404(exchange: Exchange, tenancy: TenancyAdmin, level: TreeLevel, id: string): unknown {
  const record = tenancy.show(level, id)
  return record === undefined ? notFound(exchange, level, id) : shown(record)
}

const notFound = (exchange: Exchange, level: TreeLevel, id: string): undefined =>
  refuse(exchange, { code: 'no-such-record', because: `there is no ${level} ${id}`, param: level })

/** A record as it is shown: hashes are cut, because a beginning is enough to name a secret. */
function shown(record: TreeRecord): object {
  if (!('secrets' in record)) return record
  return { ...record, secrets: record.secrets.map((secret) => ({ ...secret, hash: secret.hash.slice(0, 16) })) }
}

function replied(exchange: Exchange, reply: TenancyReply): unknown {
  if (reply.kind === 'refused') return refuse(exchange, reply.refusal)
  if (reply.kind === 'forbidden') return forbid(exchange, reply.refusal)
  const { revision, record, secret } = reply
  return {
    object: 'spillway.change',
    revision,
    record: record === undefined ? null : shown(record),
    ...(secret !== undefined && { secret }),
  }
}

/** The rule and the holder of the authority are in `error.spillway`. */
function forbid(exchange: Exchange, { rule, authority, param, because }: AuthorityRefusal): undefined {
  exchange.sendRefusal({
    code: codeOf(rule),
    because,
    blame: 'request',
    retryAfterUs: undefined,
    detail: { rule, authority: nameOf(authority) },
    ...(param !== null && { param }),
  })
  return undefined
}

const nameOf = (holder: AuthorityHolder): string => ('id' in holder ? `${holder.kind} ${holder.id}` : holder.kind)

const CODES: Readonly<Partial<Record<AuthorityRule, AdminCode>>> = {
  exists: 'no-such-record',
  'id-is-free': 'id-taken',
  'hash-is-new': 'id-taken',
  'file-wins': 'in-configuration-file',
  'org-is-empty': 'still-used',
  'two-live-secrets': 'two-live-secrets',
  'id-is-plain': 'invalid-value',
  'text-is-plain': 'invalid-value',
  'value-is-valid': 'invalid-value',
  'grace-within-week': 'invalid-value',
  'within-bound': 'registry-full',
}

/** All other rules are about who may do what. */
const codeOf = (rule: AuthorityRule): AdminCode => CODES[rule] ?? 'beyond-authority'
