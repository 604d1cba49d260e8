import { columnsOf } from './columns.ts'
import { type Command, numberFlag, textFlag } from './command.ts'
import { explainCommand } from './explain.ts'
import { serverAccessOf } from './http-admin-client.ts'

/** A refusal as the server lists it. */
interface WireRefusal {
  readonly request: string
  readonly at: string
  readonly tenant: string
  readonly model: string
  readonly outcome: string
  readonly code: string
  readonly because: string
  readonly retry_after_ms: number | null
}

export const refusals: Command = {
  name: 'refusals',
  summary: 'list the last requests that were not answered, with the reason',
  about:
    'The running server remembers the last 20 refusals of each tenant. An admin key sees all of them, the key of a tenant\n' +
    'its own. "spillway explain REQUEST" tells the whole story of one.',
  flags: {
    tenant: { type: 'string', short: 't', value: 'ID', meaning: 'of this tenant only (with an admin key)' },
    limit: { type: 'string', short: 'n', value: 'NUMBER', meaning: 'at most this many (default 20, at most 500)' },
    ...explainCommand.flags,
  },
  examples: ['spillway refusals', 'spillway refusals --tenant acme --limit 5'],
  async run(flags, io) {
    const { fetchFrom } = await import('./http-explain.ts')
    const query = new URLSearchParams({
      limit: String(numberFlag(flags, 'limit', { min: 1, max: 500, isWhole: true }) ?? LIMIT_DEFAULT),
    })
    const tenant = textFlag(flags, 'tenant')
    if (tenant !== undefined) query.set('tenant', tenant)
    const { data } = await fetchFrom<{ data: WireRefusal[] }>(
      serverAccessOf(flags),
      `/spillway/refusals?${query.toString()}`,
    )
    io.out(flags['json'] === true ? JSON.stringify(data) : tell(data))
    return 0
  },
}

const LIMIT_DEFAULT = 20

function tell(data: readonly WireRefusal[]): string {
  if (data.length === 0) return 'No refusal is remembered.'
  const rows = data.map(({ at, request, tenant, model, code, retry_after_ms: ms, because }) => [
    at,
    request,
    tenant,
    model,
    code,
    ms === null ? 'never' : `${ms} ms`,
    because,
  ])
  return columnsOf([['WHEN', 'REQUEST', 'TENANT', 'MODEL', 'CODE', 'COME BACK', 'WHY'], ...rows])
}
