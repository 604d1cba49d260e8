import type { AuthorityHolder, AuthorityRefusal, AuthorityRule } from '../../domain/tenancy.ts'
import type { StoredFact } from '../../domain/tenancy-store.ts'
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
import { digestOfBearer, type KeyDirectory } from '../authenticate.ts'
import { callerFor } from '../check-call.ts'
import type { Exchange } from '../exchange.ts'
import type { AdminCode } from '../fleet-admin.ts'
import type { Route } from '../http-server.ts'
import type {
  AskedEdit,
  TenancyAdmin,
  TenancyDenied,
  TenancyDesk,
  TenancyReply,
  TenancySight,
  TenantCredential,
  TreeLevel,
  TreeRecord,
} from '../tenancy-admin.ts'
import { adminRoute, bodyOf, refuse } from './admin.ts'

/**
 * Orgs, tenants and keys of the running platform. Every change has a reason and is stored with its author; it is in force
 * when the call returns. A new secret is in the answer once and nowhere else. What the configuration file names is shown
 * and cannot be changed here.
 *
 *   /admin/v1/…      with operators' keys: everything
 *   /v1/spillway/…   with tenants' keys that manage, and tokens with a role in an org: that org, as far as the role goes
 *
 * Both have the same bodies and answers. A key of the one kind is nobody under the path of the other.
 */
export interface TenancyDeps {
  readonly tenancy: TenancyAdmin
  readonly admins: AdminDirectory
  readonly keys: KeyDirectory
  readonly bodyBytesMax: number
}

interface DeskAsk {
  readonly exchange: Exchange
  readonly desk: TenancyDesk
  readonly rest: string
  readonly query: URLSearchParams
}

type DeskRoute = (method: Route['method'], path: string, handle: (ask: DeskAsk) => unknown) => Route

export function tenancyRoutes({ tenancy, admins, keys, bodyBytesMax }: TenancyDeps): Route[] {
  const forOperators: DeskRoute = (method, path, handle) =>
    adminRoute(admins, method, `/admin/v1/${path}`, (ask) => handle({ ...ask, desk: tenancy.asOperator(ask.by) }))
  const forTenants: DeskRoute = (method, path, handle) => ({
    method,
    path: `${SELF_ROOT}/${path}`,
    async handle(exchange, rest) {
      const desk = deskOf(exchange, keys, tenancy)
      if (desk === undefined) return
      const query = new URL(exchange.req.url ?? '/', 'http://localhost').searchParams
      const value = await handle({ exchange, desk, rest, query })
      if (value !== undefined) exchange.sendJson(200, JSON.stringify(value))
    },
  })
  return [...deskRoutes(forOperators, bodyBytesMax), ...deskRoutes(forTenants, bodyBytesMax)]
}

/** The desk of a tenant's key or token; undefined: it was refused. */
function deskOf(exchange: Exchange, keys: KeyDirectory, tenancy: TenancyAdmin): TenancyDesk | undefined {
  const caller = callerFor(exchange, keys, {})
  if (caller === undefined) return undefined
  const credential = credentialOf(exchange)
  const desk = credential === undefined ? undefined : tenancy.asTenant(credential)
  if (desk === undefined)
    exchange.sendRefusal({ ...NOT_MANAGING, because: `the key ${caller.key.id} does not manage an org` })
  return desk
}

/** What a request proves beyond its caller; undefined for a request without a credential. */
export function credentialOf(exchange: Exchange): TenantCredential | undefined {
  const { proof } = exchange
  if (proof !== undefined) return proof.kind === 'known' ? { identity: proof.identity } : undefined
  const digest = digestOfBearer(exchange)
  return digest === undefined ? undefined : { digest }
}

const NOT_MANAGING = {
  code: 'key-not-allowed',
  blame: 'request',
  retryAfterUs: undefined,
  detail: { terms: 'canManage' },
} as const

export const SELF_ROOT = '/v1/spillway'

/** The grace of a replaced secret where the call names none: time for a rollout of the new one. */
const GRACE_MS = 24 * 3_600_000

function deskRoutes(on: DeskRoute, bodyBytesMax: number): Route[] {
  const edited = async (
    { exchange, desk }: DeskAsk,
    check: (body: unknown) => Checked<{ because: string }>,
    editOf: (body: object) => object,
  ): Promise<unknown> => {
    const body = await bodyOf(exchange, bodyBytesMax, check)
    if (body === undefined) return undefined
    return replied(exchange, await desk.change(editOf(body) as AskedEdit))
  }
  const level = (name: TreeLevel, checkCreate: Check, checkChange: Check): Route[] => [
    on('GET', `${name}s`, (ask) => listed(ask, name)),
    on('GET', `${name}s/*`, async ({ exchange, desk, rest }) =>
      seen(exchange, await desk.show(name, rest), shownRecord),
    ),
    on('POST', `${name}s`, (ask) => edited(ask, checkCreate, (body) => ({ ...body, kind: `create-${name}` }))),
    on('PATCH', `${name}s/*`, (ask) =>
      edited(ask, checkChange, (body) => ({ ...body, kind: `change-${name}`, id: ask.rest })),
    ),
  ]
  const removal = (name: 'org' | 'tenant') =>
    on('DELETE', `${name}s/*`, (ask) =>
      edited(ask, checkReason, (body) => ({ ...body, kind: `remove-${name}`, id: ask.rest })),
    )
  return [
    ...level('org', makeCheck(OrgCreateBody), makeCheck(OrgChangeBody)),
    ...level('tenant', makeCheck(TenantCreateBody), makeCheck(TenantChangeBody)),
    ...level('key', makeCheck(KeyCreateBody), makeCheck(KeyChangeBody)),
    removal('org'),
    removal('tenant'),
    on('DELETE', 'keys/*', (ask) => {
      const [, id, hashPrefix = ''] = /^([^/]+)\/secrets\/(.*)$/s.exec(ask.rest) ?? []
      if (id !== undefined && !/^[0-9a-f]{8,64}$/.test(hashPrefix)) return noHash(ask)
      return edited(ask, checkReason, (body) =>
        id === undefined
          ? { ...body, kind: 'remove-key', id: ask.rest }
          : { ...body, kind: 'revoke-secret', id, hashPrefix },
      )
    }),
    on('POST', 'keys/*', (ask) => {
      const [, id] = /^([^/]+)\/rotate$/.exec(ask.rest) ?? []
      if (id === undefined) return unknownCommand(ask)
      return edited(ask, checkRotate, (body) => ({ graceMs: GRACE_MS, ...body, kind: 'rotate-key', id }))
    }),
    on('GET', 'tenancy-changes', async ({ exchange, desk, query }) => {
      const id = query.get('id') ?? undefined
      const changes = await desk.history({ id, limit: limitOf(query) })
      return seen(exchange, changes, (facts) => ({ object: 'list', data: facts.map(shownFact) }))
    }),
  ]
}

type Check = (body: unknown) => Checked<{ because: string }>

const checkReason = makeCheck(ReasonBody)
const checkRotate: Check = makeCheck(KeyRotateBody)

const LIST_MAX = 1_000

const limitOf = (query: URLSearchParams): number =>
  Math.min(LIST_MAX, Math.max(1, Math.trunc(Number(query.get('limit') ?? 100)) || 100))

async function listed({ exchange, desk, query }: DeskAsk, level: TreeLevel): Promise<unknown> {
  const parentId = level === 'org' ? undefined : (query.get(level === 'key' ? 'tenant' : 'org') ?? undefined)
  const limit = limitOf(query)
  const after = query.get('after') ?? undefined
  return seen(exchange, await desk.list(level, { parentId, after, limit: limit + 1 }), (records) => ({
    object: 'list',
    data: records.slice(0, limit).map(shownRecord),
    has_more: records.length > limit,
  }))
}

function seen<T>(exchange: Exchange, sight: TenancySight<T>, tell: (value: T) => object): object | undefined {
  return sight.kind === 'seen' ? tell(sight.value) : denied(exchange, sight)
}

function denied(exchange: Exchange, answer: TenancyDenied): undefined {
  return answer.kind === 'refused' ? refuse(exchange, answer.refusal) : forbid(exchange, answer.refusal)
}

const noHash = ({ exchange }: DeskAsk): undefined =>
  refuse(exchange, {
    code: 'invalid-value',
    because: 'a secret is named by the first 8 or more digits of its hash, 0–9 and a–f, as the key’s record shows it',
    param: 'hash',
  })

const unknownCommand = ({ exchange }: DeskAsk): undefined =>
  refuse(exchange, { code: 'no-such-record', because: 'keys have no such command. Known: rotate', param: 'key' })

const shownFact = (fact: StoredFact): object => ({
  ...fact,
  before: fact.before === undefined ? null : shownRecord(fact.before),
  after: fact.after === undefined ? null : shownRecord(fact.after),
})

/** A record as it is shown: hashes are cut, because a beginning is enough to name a secret. */
export function shownRecord(record: TreeRecord): object {
  if (!('secrets' in record)) return record
  return { ...record, secrets: record.secrets.map((secret) => ({ ...secret, hash: secret.hash.slice(0, 16) })) }
}

function replied(exchange: Exchange, reply: TenancyReply): unknown {
  if (reply.kind !== 'changed') return denied(exchange, reply)
  const { revision, record, secret } = reply
  return {
    object: 'spillway.change',
    revision,
    record: record === undefined ? null : shownRecord(record),
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
