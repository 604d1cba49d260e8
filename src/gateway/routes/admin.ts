import type { RegistryEdit, RegistryKind } from '../../domain/registry.ts'
import { ModelPutBody, ReasonBody, ReplicaPutBody, ReplicaStateBody, RolloutBody } from '../../wire/admin.ts'
import { type Checked, makeCheck } from '../../wire/check.ts'
import { andThen, readStorable } from '../../wire/read-body.ts'
import type { AdminDirectory } from '../admin-directory.ts'
import { collectBody } from '../collect-body.ts'
import { ERROR_TABLE, fixedRetryUs } from '../error-table.ts'
import { sentence } from '../error-words.ts'
import type { Exchange } from '../exchange.ts'
import type { AdminAnswer, AdminReason, AdminRefusal, FleetAdmin } from '../fleet-admin.ts'
import type { Route } from '../http-server.ts'

/**
 * The admin API: models, releases, pools and replicas of the running platform. Every change has a reason, is stored
 * with its author, and is in force when the call returns. What the configuration file names is shown and cannot be
 * changed here.
 */
export interface AdminDeps {
  readonly admin: FleetAdmin
  readonly keys: AdminDirectory
  readonly bodyBytesMax: number
}

export interface AdminAsk {
  readonly exchange: Exchange
  /** The author: the key's id. */
  readonly by: string
  /** What stands where the path has a star. */
  readonly rest: string
  readonly query: URLSearchParams
}

const ROOT = '/admin/v1'

export function adminRoutes({ admin, keys, bodyBytesMax }: AdminDeps): Route[] {
  const on = (method: Route['method'], path: string, handle: (ask: AdminAsk) => unknown): Route =>
    adminRoute(keys, method, path, handle)
  const edited = async <B extends { because: string }>(
    ask: AdminAsk,
    check: (body: unknown) => Checked<B>,
    work: (body: B, reason: AdminReason) => Promise<AdminAnswer> | AdminAnswer,
  ): Promise<unknown> => {
    const body = await bodyOf(ask.exchange, bodyBytesMax, check)
    if (body === undefined) return undefined
    return answerOf(ask.exchange, await work(body, { by: ask.by, because: body.because }))
  }
  const removal = (kind: RegistryKind) => (ask: AdminAsk) =>
    edited(ask, checkReason, (_, reason) => admin.remove(kind, ask.rest, reason))
  return [
    on('GET', `${ROOT}/models`, async () => ({ object: 'list', data: await admin.models() })),
    on('GET', `${ROOT}/models/*`, async ({ exchange, rest }) =>
      found(exchange, 'model', rest, await admin.models(), 'name'),
    ),
    on('POST', `${ROOT}/models`, (ask) =>
      edited(ask, checkModelPut, (body, reason) => {
        const edits = editsOf(body)
        if (edits.length === 0) return { kind: 'refused', refusal: NOTHING_GIVEN }
        return edits.some(({ name }) => name === '') ? { kind: 'refused', refusal: NO_NAME } : admin.edit(edits, reason)
      }),
    ),
    on('DELETE', `${ROOT}/models/*`, removal('model')),
    on('DELETE', `${ROOT}/releases/*`, removal('release')),
    on('GET', `${ROOT}/pools`, async () => ({ object: 'list', data: await admin.pools() })),
    on('GET', `${ROOT}/pools/*`, ({ exchange, rest }) => showPool(exchange, admin, rest)),
    on('DELETE', `${ROOT}/pools/*`, removal('pool')),
    on('POST', `${ROOT}/replicas`, (ask) =>
      edited(ask, checkReplicaPut, ({ pool, url }, reason) => admin.addReplica(pool, url, reason)),
    ),
    on('POST', `${ROOT}/replicas/*`, (ask) =>
      edited(ask, checkReplicaState, ({ state }, reason) => admin.drain(ask.rest, state === 'draining', reason)),
    ),
    on('DELETE', `${ROOT}/replicas/*`, (ask) =>
      edited(ask, checkReason, (_, reason) => admin.removeReplica(ask.rest, reason)),
    ),
    on('GET', `${ROOT}/rollouts`, () => ({ object: 'list', data: admin.rollouts() })),
    on('GET', `${ROOT}/rollouts/*`, ({ exchange, rest }) => found(exchange, 'model', rest, admin.rollouts(), 'model')),
    on('POST', `${ROOT}/rollouts/*`, (ask) =>
      edited(ask, checkRollout, ({ command, release }, reason) =>
        admin.rollout(ask.rest, { kind: command, release }, reason),
      ),
    ),
    on('POST', `${ROOT}/reload`, async (ask) => {
      const body = await bodyOf(ask.exchange, bodyBytesMax, checkReason)
      if (body === undefined) return undefined
      const answer = await admin.reload({ by: ask.by, because: body.because })
      return answer.kind === 'refused' ? refuse(ask.exchange, answer.refusal) : answer.reload
    }),
    on('POST', `${ROOT}/restart`, async (ask) => {
      const body = await bodyOf(ask.exchange, bodyBytesMax, checkReason)
      if (body === undefined) return undefined
      const answer = await admin.restart({ by: ask.by, because: body.because })
      if (answer.kind === 'refused') return refuse(ask.exchange, answer.refusal)
      return { object: 'spillway.restart', processes: answer.processes }
    }),
    on('GET', `${ROOT}/changes`, async ({ exchange, query }) => {
      const limit = Math.min(1_000, Math.max(1, Math.trunc(Number(query.get('limit') ?? 50)) || 50))
      const changes = await admin.history({ name: query.get('name') ?? undefined, limit })
      if ('code' in changes) return refuse(exchange, changes)
      return { object: 'list', data: changes }
    }),
  ]
}

const NOTHING_GIVEN: AdminRefusal = {
  code: 'missing-required-parameter',
  because: 'Nothing to put was given: send a model, releases or pools.',
  param: 'model',
}

const NO_NAME: AdminRefusal = {
  code: 'missing-required-parameter',
  because: 'Every model needs a name and every pool an id, as text.',
  param: 'pools',
}

/** A route for administrators only. Its result is the answer; undefined means that it has answered already. */
export function adminRoute(
  keys: AdminDirectory,
  method: Route['method'],
  path: string,
  handle: (ask: AdminAsk) => unknown,
): Route {
  return {
    method,
    path,
    async handle(exchange, rest) {
      const by = keys.whoIs(exchange)
      if (typeof by !== 'string') {
        exchange.sendRefusal(by)
        return
      }
      const query = new URL(exchange.req.url ?? '/', 'http://localhost').searchParams
      const value = await handle({ exchange, by, rest, query })
      if (value !== undefined) exchange.sendJson(200, JSON.stringify(value))
    },
  }
}

const checkModelPut = makeCheck(ModelPutBody)
const checkReason = makeCheck(ReasonBody)
const checkReplicaPut = makeCheck(ReplicaPutBody)
const checkRollout = makeCheck(RolloutBody)
const checkReplicaState = makeCheck(ReplicaStateBody)

function editsOf({ model, releases = [], pools = [] }: ModelPutBody): RegistryEdit[] {
  const name = textOf(model?.['name'])
  return [
    ...(model === undefined ? [] : [{ kind: 'model', name, body: model } as const]),
    ...releases.map((given): RegistryEdit => {
      const body = { ...(name !== '' && { model: name }), ...given }
      return { kind: 'release', name: `${textOf(body.model)}@${textOf(given['version'])}`, body }
    }),
    ...pools.map((given): RegistryEdit => {
      const body = { ...(name !== '' && { model: name }), ...given } as Readonly<Record<string, unknown>>
      return { kind: 'pool', name: textOf(body['id']), body }
    }),
  ]
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export async function bodyOf<B>(
  exchange: Exchange,
  bytesMax: number,
  check: (body: unknown) => Checked<B>,
): Promise<B | undefined> {
  const collected = await collectBody(exchange, bytesMax)
  if (collected.kind === 'gone') return undefined
  const read = collected.kind === 'fault' ? collected : andThen(readStorable(collected.bytes), check)
  if (read.kind === 'ok') return read.value
  exchange.sendFault(read.fault)
  return undefined
}

export function answerOf(exchange: Exchange, answer: AdminAnswer): unknown {
  if (answer.kind === 'refused') return refuse(exchange, answer.refusal)
  return { object: 'spillway.change', revision: answer.revision ?? null }
}

/** The table says whose fault a refusal is: the request's, which a new request can mend, or the platform's. */
export function refuse(exchange: Exchange, { code, because, param }: AdminRefusal): undefined {
  if (ERROR_TABLE[code].blame === 'request') exchange.sendFault({ code, message: sentence(because), param })
  else exchange.sendRefusal({ code, because, blame: 'platform', retryAfterUs: fixedRetryUs(code) })
  return undefined
}

/** A pool, or what was learned of its engines: `POOL/learned`. */
async function showPool(exchange: Exchange, admin: FleetAdmin, rest: string): Promise<unknown> {
  const [, poolId] = /^(.+)\/learned$/.exec(rest) ?? []
  if (poolId === undefined) return found(exchange, 'pool', rest, await admin.pools(), 'id')
  return admin.learned(poolId) ?? found(exchange, 'pool', poolId, await admin.pools(), 'id')
}

function found<T, K extends keyof T>(
  exchange: Exchange,
  what: 'model' | 'pool',
  name: string,
  all: readonly T[],
  key: K,
): unknown {
  const one = all.find((item) => item[key] === name)
  if (one !== undefined) return one
  const because = `there is no ${what} ${name}. Known: ${all.map((item) => String(item[key])).join(', ') || 'none'}`
  return refuse(exchange, { code: `no-such-${what}`, because, param: what })
}
