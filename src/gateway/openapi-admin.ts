import type { TSchema } from 'typebox'
import {
  AdmissionBody,
  EraseBody,
  ModelPutBody,
  ReasonBody,
  ReplicaPutBody,
  ReplicaStateBody,
  RolloutBody,
  TenantStateBody,
} from '../wire/admin.ts'
import {
  KeyChangeBody,
  KeyCreateBody,
  KeyRotateBody,
  OrgChangeBody,
  OrgCreateBody,
  TenantChangeBody,
  TenantCreateBody,
} from '../wire/tenancy.ts'

/** The admin API's part of the description; models and pools are described by the configuration's own schema. */
export interface AdminSchemas {
  readonly model: TSchema
  readonly release: TSchema
  readonly pool: TSchema
}

const REFUSALS = {
  400: 'The change makes no sense; `error.param` says where.',
  401: 'No valid key.',
  403: 'A tenant\u2019s key: the admin API has keys of its own.',
  404: 'No such thing.',
  409: 'Not now, or not here: the configuration file says it, or it is still used.',
  503: 'The registry\u2019s database does not answer.',
}

export function adminPaths(): Record<string, object> {
  return {
    '/admin/v1/models': {
      get: operation('adminListModels', 'Models with their releases, pools and replicas.'),
      post: operation('adminPutModels', 'Adds or replaces a model, releases and pools, all or none.', PUT),
    },
    '/admin/v1/models/{name}': {
      get: named('adminShowModel', 'One model.'),
      delete: named('adminRemoveModel', 'Removes a model with its releases and pools.', ReasonBody),
    },
    '/admin/v1/releases/{name}': {
      delete: named('adminRemoveRelease', 'Removes a release, as MODEL@VERSION.', ReasonBody),
    },
    '/admin/v1/pools': { get: operation('adminListPools', 'Pools with their replicas.') },
    '/admin/v1/pools/{name}': {
      get: named('adminShowPool', 'One pool.'),
      delete: named('adminRemovePool', 'Closes a pool: what waits and runs there ends first.', ReasonBody),
    },
    '/admin/v1/pools/{name}/learned': {
      get: named(
        'adminShowLearned',
        'What was learned of the engines of a pool: coefficients, errors, ceiling, memory.',
      ),
    },
    '/admin/v1/replicas': {
      post: operation('adminAddReplica', 'One address more in a pool of engines.', ReplicaPutBody),
    },
    '/admin/v1/replicas/{name}': {
      post: named('adminSetReplicaState', 'Drains a replica, or uses it again.', ReplicaStateBody),
      delete: named('adminRemoveReplica', 'Takes out a replica that was added here.', ReasonBody),
    },
    '/admin/v1/rollouts': { get: operation('adminListRollouts', 'How far each model\u2019s rollout has got.') },
    '/admin/v1/rollouts/{name}': {
      get: named('adminShowRollout', 'One model\u2019s rollout, with the judge\u2019s numbers.'),
      post: named('adminChangeRollout', 'Starts, pauses, resumes, promotes, rolls back or undoes.', RolloutBody),
    },
    '/admin/v1/rollout-outputs': {
      get: {
        ...operation(
          'adminListOutputs',
          'Answers of shadows beside those of clients, screened and cut, newest first, of tenants whose `storing` allows it. Each call is audited.',
        ),
        parameters: listParameters(50, 'model', 'tenant'),
      },
    },
    ...tenancyPaths(),
    ...operatorPaths(),
    '/admin/v1/reload': {
      post: operation(
        'adminReload',
        'Reads the configuration file again: all of it takes effect, or nothing. Answers `changed`, in numbers, and `needsRestart`, the changed settings that wait for a restart.',
        ReasonBody,
      ),
    },
    '/admin/v1/restart': {
      post: operation(
        'adminRestart',
        'Replaces the processes of this host one after the other, without refusing a connection or cutting a stream within the grace. Answers `processes`, their number, when the restart has begun; 409 where there is one process.',
        ReasonBody,
      ),
    },
    '/admin/v1/requests/{name}': {
      get: named('adminExplainRequest', 'Every decision about one request of any tenant, with its reason.'),
    },
    '/admin/v1/refusals': {
      get: {
        ...operation('adminListRefusals', 'The last requests of all tenants that were not answered, newest first.'),
        parameters: listParameters(500, 'tenant'),
      },
    },
    '/admin/v1/changes': {
      get: {
        ...operation('adminListChanges', 'Who changed what and why, newest first.'),
        parameters: listParameters(1_000, 'name'),
      },
    },
  }
}

/** Words that narrow a list, and how long it may be. */
const listParameters = (maximum: number, ...names: readonly string[]): object[] => [
  ...names.map((name) => ({ name, in: 'query', schema: { type: 'string' } })),
  { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum } },
]

const TENANT_PATH = '/admin/v1/tenants/{name}'

/** What operators alone do: orders in trouble, and a recording. Pausing is beside the other calls on a tenant. */
function operatorPaths(): Record<string, object> {
  return {
    [TENANT_PATH]: {
      ...tenancyPaths()[TENANT_PATH],
      post: named('adminPauseTenant', 'Refuses the new requests of a tenant, or takes them again.', TenantStateBody),
    },
    '/admin/v1/admission': {
      get: operation('adminShowAdmission', 'The mode of admission, and the tenants that are paused.'),
      post: operation('adminChangeMode', 'Lets admission only observe, or enforces its verdicts again.', AdmissionBody),
    },
    '/admin/v1/recording': {
      get: operation(
        'adminRecord',
        'Streams a line of JSON for every request that ends from now on, without its text, until the client hangs up.',
      ),
    },
  }
}

/** The audit's copy, and erasure. */
export function auditPaths(): Record<string, object> {
  return {
    '/admin/v1/audit': {
      get: {
        ...operation('adminSearchAudit', 'Events of the audit’s copy, newest first. The search is an event itself.'),
        parameters: [
          ...['org', 'tenant', 'kind', 'request', 'user', 'key', 'from', 'to', 'page', 'names'].map((name) => ({
            name,
            in: 'query',
            schema: { type: 'string' },
          })),
          { name: 'limit', in: 'query', schema: { type: 'integer', minimum: 1, maximum: 1_000 } },
        ],
      },
    },
    '/admin/v1/audit/erase': {
      post: operation('adminEraseFromAudit', 'Destroys the key that a name in the audit is sealed with.', EraseBody),
    },
  }
}

/** Orgs, tenants and keys that are made at run time. */
export function tenancyPaths(): Record<string, object> {
  const level = (one: string, Name: string, parent: string | undefined, create: object, change: object) => ({
    [`/admin/v1/${one}s`]: {
      get: {
        ...operation(`adminList${Name}s`, `The ${one}s, in order of their ids.`),
        parameters: [...(parent === undefined ? [] : [parent]), 'after', 'limit'].map((name) => ({
          name,
          in: 'query',
          schema: { type: name === 'limit' ? 'integer' : 'string' },
        })),
      },
      post: operation(`adminCreate${Name}`, `Makes a new ${one}, which is in force at once.`, create),
    },
    [`/admin/v1/${one}s/{name}`]: {
      get: named(`adminShow${Name}`, `One ${one}.`),
      patch: named(`adminChange${Name}`, `Changes the parts of the ${one} that are named.`, change),
      delete: named(`adminRemove${Name}`, `Removes the ${one}.`, ReasonBody),
    },
  })
  return {
    '/admin/v1/usage': { get: operation('adminUsage', 'Who used what, by org, tenant, key, model, day or hour.') },
    ...level('org', 'Org', undefined, OrgCreateBody, OrgChangeBody),
    ...level('tenant', 'Tenant', 'org', TenantCreateBody, TenantChangeBody),
    ...level('key', 'Key', 'tenant', KeyCreateBody, KeyChangeBody),
    '/admin/v1/keys/{name}/rotate': {
      post: named('adminRotateKey', 'A new secret, told once; the one before lives on for the grace.', KeyRotateBody),
    },
    '/admin/v1/keys/{name}/secrets/{hash}': {
      delete: {
        ...operation('adminRevokeSecret', 'Ends one secret at once, named by the beginning of its hash.', ReasonBody),
        parameters: ['name', 'hash'].map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      },
    },
    '/admin/v1/tenancy-changes': {
      get: {
        ...operation('adminListTenancyChanges', 'Who changed which org, tenant or key and why, newest first.'),
        parameters: ['id', 'limit'].map((name) => ({
          name,
          in: 'query',
          schema: { type: name === 'limit' ? 'integer' : 'string' },
        })),
      },
    },
  }
}

export const adminComponents = ({ model, release, pool }: AdminSchemas): Record<string, object> => ({
  AdminModel: model,
  AdminRelease: release,
  AdminPool: pool,
})

const listOf = (name: string): object => ({ type: 'array', items: { $ref: `#/components/schemas/${name}` } })

/** The frame of the body, with the schemas of its parts. */
const PUT = {
  ...ModelPutBody,
  properties: {
    ...ModelPutBody.properties,
    model: { $ref: '#/components/schemas/AdminModel' },
    releases: listOf('AdminRelease'),
    pools: listOf('AdminPool'),
  },
}

function operation(operationId: string, summary: string, body?: object): object {
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }
  const refusals = Object.entries(REFUSALS).map(([status, description]) => [status, { description, content }])
  return {
    operationId,
    summary,
    security: [{ adminKey: [] }],
    ...(body !== undefined && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: { 200: { description: 'OK' }, ...Object.fromEntries(refusals) },
  }
}

const named = (operationId: string, summary: string, body?: object): object => ({
  ...operation(operationId, summary, body),
  parameters: [{ name: 'name', in: 'path', required: true, schema: { type: 'string' } }],
})
