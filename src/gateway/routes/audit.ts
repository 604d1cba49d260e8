import type { AuditCopyStore, AuditSearch, CopiedEvent } from '../../domain/audit-copy.ts'
import { AUDIT_KINDS } from '../../domain/audit-event.ts'
import { EraseBody } from '../../wire/admin.ts'
import { makeCheck } from '../../wire/check.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import type { AdminDirectory } from '../admin-directory.ts'
import type { KeyDirectory } from '../authenticate.ts'
import { callerFor } from '../check-call.ts'
import { fixedRetryUs } from '../error-table.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import type { TenancyAdmin } from '../tenancy-admin.ts'
import { adminRoute, bodyOf } from './admin.ts'
import { credentialOf, SELF_ROOT } from './tenancy.ts'

/**
 * The audit's searchable copy, and erasure:
 *
 *   GET  /admin/v1/audit          for operators: everything
 *   GET  /v1/spillway/audit       with keys and tokens whose role reads an org's history: that org
 *   POST /admin/v1/audit/erase    destroys the key of an end user or key
 *
 * Newest first, a page at a time. Every search is an event of the audit itself. The copy is never the truth: proofs come
 * from the chain (`spillway audit prove`).
 */
export interface AuditDesk {
  /** Undefined where there is no copy to search in. */
  readonly store: Pick<AuditCopyStore, 'search'> | undefined
  /** Ids of the keys that this name of the tenant is sealed with. */
  sealsOf(tenant: string, what: 'user' | 'key', name: string): Promise<readonly string[]>
  /** Events with their names opened, as far as their keys are kept. */
  opened(events: readonly CopiedEvent[]): Promise<readonly object[]>
  exported(by: string, org: string | undefined, search: string, count: number): void
  /** How many keys were destroyed. */
  erase(ask: EraseAsk): Promise<number>
}

export interface EraseAsk {
  readonly by: string
  readonly because: string
  readonly tenant: string
  readonly what: 'user' | 'key'
  readonly name: string
}

export interface AuditDeps {
  readonly admins: AdminDirectory
  readonly keys: KeyDirectory
  readonly tenancy: Pick<TenancyAdmin, 'historyReaderOf'>
  /** Undefined where nothing is audited. */
  readonly desk: () => AuditDesk | undefined
}

const BODY_BYTES_MAX = 16_384
const checkErase = makeCheck(EraseBody)

export function auditRoutes({ admins, keys, tenancy, desk }: AuditDeps): Route[] {
  return [
    adminRoute(admins, 'GET', '/admin/v1/audit', ({ exchange, by, query }) =>
      searched(exchange, desk(), { by, query, org: undefined }),
    ),
    {
      method: 'GET',
      path: `${SELF_ROOT}/audit`,
      async handle(exchange) {
        const caller = callerFor(exchange, keys, {})
        if (caller === undefined) return
        const credential = credentialOf(exchange)
        const reader = credential === undefined ? undefined : tenancy.historyReaderOf(credential)
        if (reader === undefined) {
          exchange.sendRefusal({ ...NOT_READING, because: `the key ${caller.key.id} may not read its org’s history` })
          return
        }
        const query = new URL(exchange.req.url ?? '/', 'http://localhost').searchParams
        const answer = await searched(exchange, desk(), { by: reader.name, query, org: reader.orgId })
        if (answer !== undefined) exchange.sendJson(200, JSON.stringify(answer))
      },
    },
    adminRoute(admins, 'POST', '/admin/v1/audit/erase', async ({ exchange, by }) => {
      const body = await bodyOf(exchange, BODY_BYTES_MAX, checkErase)
      if (body === undefined) return undefined
      const open = desk()
      if (open === undefined) return off(exchange)
      return { object: 'spillway.erasure', keys: await open.erase({ ...body, by }) }
    }),
  ]
}

const NOT_READING = {
  code: 'key-not-allowed',
  blame: 'request',
  retryAfterUs: undefined,
  detail: { terms: 'canManage' },
} as const

interface Asked {
  readonly by: string
  readonly query: URLSearchParams
  /** The org beyond which the caller sees nothing. */
  readonly org: string | undefined
}

const LIMIT_MAX = 1_000

async function searched(exchange: Exchange, desk: AuditDesk | undefined, asked: Asked): Promise<object | undefined> {
  if (desk?.store === undefined) return off(exchange)
  const search = await searchOf(desk, asked)
  if (typeof search === 'string') {
    exchange.sendFault(invalidRequest(search, null, 'invalid-value'))
    return undefined
  }
  let found: readonly CopiedEvent[]
  try {
    found = await desk.store.search({ ...search, limit: search.limit + 1 })
  } catch {
    const because = 'the audit’s copy cannot be read now. The chain has it: spillway audit export'
    const retryAfterUs = fixedRetryUs('audit-copy-unavailable')
    exchange.sendRefusal({ code: 'audit-copy-unavailable', because, blame: 'platform', retryAfterUs })
    return undefined
  }
  const page = found.slice(0, search.limit)
  const last = page.at(-1)
  desk.exported(asked.by, asked.org, toldSearch(asked.query), page.length)
  const more = found.length > page.length && last !== undefined
  return {
    object: 'list',
    data:
      asked.query.get('names') === 'true'
        ? await desk.opened(page)
        : page.map(({ line }) => JSON.parse(line) as object),
    has_more: more,
    ...(more && { next_page: `${last.atMs}:${last.seq}:${last.origin}` }),
  }
}

/** The search without the names that were searched for. */
const toldSearch = (query: URLSearchParams): string =>
  Array.from(query, ([name, value]) => (name === 'user' || name === 'key' ? name : `${name} ${value}`))
    .join(', ')
    .slice(0, 500)

/** What is asked for, or what is wrong with it. */
async function searchOf(desk: AuditDesk, { query, org }: Asked): Promise<AuditSearch | string> {
  const text = (name: string): string | undefined => query.get(name) ?? undefined
  const [fromMs, toMs] = [timeOf(text('from'), 0), timeOf(text('to'), Number.MAX_SAFE_INTEGER)]
  if (fromMs === undefined || toMs === undefined) return 'from and to are times, as 2026-11-01 or 2026-11-01T12:00Z.'
  const kind = text('kind')
  if (kind !== undefined && !AUDIT_KINDS.some((known) => known === kind || known.startsWith(`${kind}.`))) {
    return `There is no kind ${kind}. Known: ${AUDIT_KINDS.join(', ')}.`
  }
  const page = text('page')
  const after = page === undefined ? undefined : pageOf(page)
  if (page !== undefined && after === undefined) return 'page is the next_page of the page before.'
  const limit = Math.min(LIMIT_MAX, Math.max(1, Math.trunc(Number(query.get('limit') ?? 100)) || 100))
  const tenant = text('tenant')
  const [user, key] = [text('user'), text('key')]
  if ((user !== undefined || key !== undefined) && tenant === undefined)
    return 'With user or key, name the tenant, too.'
  const seals =
    user === undefined && key === undefined
      ? undefined
      : await desk.sealsOf(tenant ?? '', user === undefined ? 'key' : 'user', user ?? key ?? '')
  return { org: org ?? text('org'), tenant, kind, request: text('request'), seals, fromMs, toMs, after, limit }
}

function timeOf(text: string | undefined, absent: number): number | undefined {
  if (text === undefined) return absent
  const time = Date.parse(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00Z` : text)
  return Number.isNaN(time) ? undefined : time
}

function pageOf(text: string): AuditSearch['after'] {
  const [, atMs, seq, origin] = /^(\d{1,15}):(\d{1,15}):(.+)$/s.exec(text) ?? []
  return origin === undefined ? undefined : { atMs: Number(atMs), seq: Number(seq), origin }
}

function off(exchange: Exchange): undefined {
  const because =
    'nothing is audited here, or no copy is kept: set audit.enabled and audit.search, and a store on a disk'
  exchange.sendRefusal({ code: 'audit-off', because, blame: 'request', retryAfterUs: undefined })
  return undefined
}
