import type { Io } from '../base/running.ts'
import type { ConsoleEvent, ConsoleView } from '../console/console-view.ts'
import { columnsOf } from './columns.ts'
import { type Command, type FlagValues, numberFlag, textFlag } from './command.ts'
import { explainCommand } from './explain.ts'
import { serverAccessOf } from './http-admin-client.ts'
import { cleanLine } from './top.ts'
import { untilSignal } from './until-signal.ts'

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
    follow: { type: 'boolean', short: 'f', meaning: 'tell refusals and failures as they happen, until Ctrl-C' },
    ...explainCommand.flags,
  },
  examples: ['spillway refusals', 'spillway refusals --tenant acme --limit 5', 'spillway refusals --follow'],
  async run(flags, io) {
    if (flags['follow'] === true) return follow(flags, io)
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

/** The console's feed, of which only what was not answered is told. */
async function follow(flags: FlagValues, io: Io): Promise<number> {
  const { views } = await import('./http-top.ts')
  const { stop, forget } = untilSignal()
  const tail = new RefusalTail(textFlag(flags, 'tenant'))
  for await (const view of views(serverAccessOf(flags), stop))
    for (const event of tail.take(view)) io.out(flags['json'] === true ? JSON.stringify(event) : spelled(event))
  forget()
  return 0
}

const spelled = ({ at, kind, ticketId, text }: ConsoleEvent): string =>
  cleanLine(`${new Date(at).toISOString()} ${kind} ${ticketId ?? ''} ${text}`)

const NOT_ANSWERED: ReadonlySet<string> = new Set(['rejected', 'expired', 'evicted', 'blocked', 'failed'])

/** What was not answered since the view before; of the first view, what it has. */
export class RefusalTail {
  readonly #tenant: string | undefined
  #last = 0

  constructor(tenant: string | undefined) {
    this.#tenant = tenant
  }

  take({ events }: Pick<ConsoleView, 'events'>): readonly ConsoleEvent[] {
    const newest = events.at(-1)?.id ?? this.#last
    // A server that was started anew counts from the beginning.
    const since = newest < this.#last ? 0 : this.#last
    this.#last = newest
    return events.filter(
      ({ id, kind, tenant }) =>
        id > since && NOT_ANSWERED.has(kind) && (this.#tenant === undefined || tenant === this.#tenant),
    )
  }
}

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
