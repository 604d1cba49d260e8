import { columnsOf } from './columns.ts'
import { type Command, numberFlag, textFlag } from './command.ts'
import { ADMIN_FLAGS, AdminClient } from './http-admin-client.ts'
import { cleanLine } from './top.ts'

interface WireOutput {
  readonly release: string
  readonly text: string
  readonly length: number
  readonly finish_reason: string | null
}

/** A pair as `GET /admin/v1/rollout-outputs` lists it. */
export interface WireOutputPair {
  readonly request: string
  readonly at: string
  readonly tenant: string
  readonly model: string
  readonly primary: WireOutput
  readonly shadow: WireOutput & { readonly outcome: string }
  readonly difference?: {
    readonly equal: boolean
    readonly first_difference_at: number | null
    readonly same_words_ratio: number
    readonly json?: { readonly primary: boolean; readonly shadow: boolean }
  }
}

export const rolloutOutputs: Command = {
  name: 'rollout outputs',
  summary: 'show answers of shadows beside those that clients got, where tenants allow it',
  about:
    'Pairs are kept for tenants with "storing: { shadows: true }", without personal data of a known form and secrets, cut to\n' +
    '4,096 characters. With each pair the texts from their first difference on; --json has all that is kept. Each gateway\n' +
    'has its own, in memory. Every call is written to the audit.',
  argument: 'MODEL',
  flags: {
    tenant: { type: 'string', short: 't', value: 'ID', meaning: 'of this tenant only' },
    limit: { type: 'string', short: 'n', value: 'NUMBER', meaning: 'at most this many (default 10, at most 50)' },
    ...ADMIN_FLAGS,
  },
  examples: ['spillway rollout outputs llama-8b', 'spillway rollout outputs llama-8b --tenant acme --json'],
  async run(flags, io) {
    const limit = numberFlag(flags, 'limit', { min: 1, max: 50, isWhole: true }) ?? 10
    const query = new URLSearchParams({ limit: String(limit) })
    for (const [name, flag] of [['model', 'argument'] as const, ['tenant', 'tenant'] as const]) {
      const value = textFlag(flags, flag)
      if (value !== undefined) query.set(name, value)
    }
    const client = new AdminClient(flags)
    const { data } = await client.call<{ data: WireOutputPair[] }>('GET', `/rollout-outputs?${query.toString()}`)
    io.out(flags['json'] === true ? JSON.stringify(data) : tellPairs(data))
    return 0
  },
}

const HEADING = ['WHEN', 'REQUEST', 'TENANT', 'SHADOW', 'SAME', 'WORDS', 'LENGTH', 'FINISH', 'JSON', 'DIFFERS AT']
/** Characters of each text that are shown. */
const SHOWN_MAX = 100

export function tellPairs(pairs: readonly WireOutputPair[]): string {
  if (pairs.length === 0) return 'No outputs are kept. A tenant allows it with "storing: { shadows: true }".'
  const [heading = '', ...rows] = columnsOf([HEADING, ...pairs.map(rowOf)]).split('\n')
  return [heading, ...rows.flatMap((row, i) => [row, ...excerptsOf(pairs[i]!)])].join('\n')
}

function rowOf({ at, request, tenant, primary, shadow, difference }: WireOutputPair): string[] {
  const both = (a: unknown, b: unknown): string => (a === b ? String(a) : `${String(a)} → ${String(b)}`)
  const json = difference?.json
  const isHidden = difference?.equal === false && difference.first_difference_at === null
  return [
    at,
    request,
    tenant,
    `${shadow.release} ${shadow.outcome}`,
    difference === undefined ? '–' : difference.equal ? 'yes' : 'no',
    difference === undefined ? '–' : `${Math.round(100 * difference.same_words_ratio)} %`,
    both(primary.length, shadow.length),
    both(primary.finish_reason ?? '–', shadow.finish_reason ?? '–'),
    json === undefined ? '–' : both(json.primary ? 'valid' : 'broken', json.shadow ? 'valid' : 'broken'),
    isHidden ? 'not in what is kept' : String(difference?.first_difference_at ?? '–'),
  ].map(cleanLine)
}

/** What a model says may have control characters, which a terminal would obey. */
function excerptsOf({ primary, shadow, difference }: WireOutputPair): string[] {
  const from = Math.max(0, (difference?.first_difference_at ?? 0) - 20)
  const excerpt = ({ text }: WireOutput): string => cleanLine(text.slice(from, from + SHOWN_MAX))
  return [`  client  ${excerpt(primary)}`, ...(shadow.text === '' ? [] : [`  shadow  ${excerpt(shadow)}`])]
}
