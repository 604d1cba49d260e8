import { columnsOf } from './columns.ts'
import type { Command } from './command.ts'
import { TENANCY_FLAGS, tenantAccessOf } from './http-admin-client.ts'
import { lastUseOf, type ShownSecret } from './tenancy.ts'

/** `spillway me`: what the server tells a tenant's key about itself. */
interface Bound {
  readonly limit: number
  readonly remaining: number
}

interface Me {
  readonly org: string
  readonly tenant: string
  readonly role: string | null
  readonly key: ShownKey
  readonly keys?: readonly ShownKey[]
  readonly terms: Readonly<Record<string, unknown>>
  readonly bands: readonly string[]
  readonly weights: Readonly<Record<'org' | 'tenant' | 'key', number | null>>
  readonly slo: {
    readonly name: string
    readonly ttftMs: number
    readonly interTokenMs: number
    readonly totalMs: number
  }
  readonly contract: string
  readonly budgets: ReadonlyArray<{
    readonly scope: string
    readonly requests?: Bound
    readonly tokens?: Bound
    readonly concurrency: { readonly limit: number | null; readonly running: number }
  }>
  readonly refusals: ReadonlyArray<{ readonly at: string; readonly request: string; readonly code: string }>
}

interface ShownKey {
  readonly id: string
  readonly role?: string
  readonly secrets?: readonly ShownSecret[]
}

export const meCommand: Command = {
  name: 'me',
  summary: 'what a tenant’s key may do, what it has left, and what it was refused last',
  about:
    'Asks the running server with the key of a tenant. A key whose role reads its org sees the other keys of its tenant\n' +
    'too. Secrets are not shown: the server does not know them.',
  flags: {
    ...TENANCY_FLAGS,
    key: { type: 'string', short: 'k', value: 'KEY', meaning: 'a tenant’s key (or set SPILLWAY_KEY)' },
  },
  examples: ['spillway me --key spw_web_…', 'spillway me --json'],
  async run(flags, io) {
    const { fetchFrom } = await import('./http-explain.ts')
    const me = await fetchFrom<Me>(tenantAccessOf(flags), '/v1/spillway/me')
    io.out(flags['json'] === true ? JSON.stringify(me) : tellMe(me))
    return 0
  },
}

function tellMe(me: Me): string {
  const { key, keys = [key], slo, weights } = me
  const facts = [
    ['key', `${key.id} of tenant ${me.tenant} in org ${me.org}`],
    ['manages', me.role === null ? 'no' : `as ${me.role}`],
    ...Object.entries(me.terms).map(([part, value]) => [part, tellTerm(part, value)]),
    ['bands', me.bands.join(', ')],
    [
      'weight',
      `${weights.key} in its tenant, ${weights.tenant} in its org${weights.org === null ? '' : `, ${weights.org} among orgs`}`,
    ],
    [
      'promise',
      `${slo.name}: first token ${slo.ttftMs} ms, between tokens ${slo.interTokenMs} ms, all ${slo.totalMs} ms`,
    ],
    ['contract', me.contract],
  ]
  const seen = new Set<string | undefined>()
  const once = facts.filter(([name]) => !seen.has(name) && seen.add(name) !== undefined)
  const sections = [
    columnsOf(once as string[][]),
    columnsOf([
      ['BUDGET', 'REQUESTS LEFT', 'TOKENS LEFT', 'RUNNING'],
      ...me.budgets.map(({ scope, requests, tokens, concurrency: { limit, running } }) => [
        scope,
        tellBound(requests),
        tellBound(tokens),
        limit === null ? String(running) : `${running} of ${limit}`,
      ]),
    ]),
    columnsOf([
      ['KEY', 'ROLE', 'SECRETS', 'LAST USED'],
      ...keys.map(({ id, role = '-', secrets = [] }) => [
        id,
        role,
        secrets.map(({ hash }) => hash).join(' '),
        lastUseOf(secrets),
      ]),
    ]),
    me.refusals.length === 0
      ? 'No refusal is remembered.'
      : columnsOf([['REFUSED', 'REQUEST', 'CODE'], ...me.refusals.map(({ at, request, code }) => [at, request, code])]),
  ]
  return sections.join('\n\n')
}

const tellBound = (bound: Bound | undefined): string =>
  bound === undefined ? 'no limit' : `${bound.remaining} of ${bound.limit}`

function tellTerm(part: string, value: unknown): string {
  if (part.endsWith('AtMs') && typeof value === 'number') return new Date(value).toISOString()
  return Array.isArray(value) ? value.join(', ') || 'none' : JSON.stringify(value)
}
