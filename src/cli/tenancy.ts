import { columnsOf } from './columns.ts'
import { type Command, type Flag, type FlagValues, textFlag, UsageError } from './command.ts'
import { argumentOf, BECAUSE_FLAG, becauseOf, TENANCY_FLAGS, TenancyClient, under } from './http-admin-client.ts'

/**
 * `spillway orgs`, `tenants` and `keys`: what is made of them while the server runs, through its API: by operators, and by
 * tenants whose key manages their org.
 */
type Level = 'org' | 'tenant' | 'key'

const text = (value: string, meaning: string): Flag => ({ type: 'string', value, meaning })

const WEIGHT = text('NUMBER', 'weight among its siblings')
const TERMS = text('JSON', 'bounds, as {"models":["m1"],"expiresAtMs":1767225600000}; null sets a part back')

const STORING = text('JSON', 'storing of answers, as {"ttlS":86400}; {} takes the defaults, null ends it')

const SCREENING = text('JSON', 'screening in place of the platform’s, as {"pii":"redact"}; null: the platform’s')

/** Flags of each level; the names of their fields in the API are the same. */
const FIELDS: Readonly<Record<Level, Readonly<Record<string, Flag>>>> = {
  org: { weight: WEIGHT, slos: text('NAMES', 'promises of its tenants, separated by commas'), terms: TERMS },
  tenant: {
    weight: WEIGHT,
    slo: text('NAME', 'its promise, one of its org’s'),
    contract: text('WORD', 'degrade or reject'),
    storing: STORING,
    screening: SCREENING,
    terms: TERMS,
  },
  key: { weight: WEIGHT, role: text('ROLE', 'role, which counts with canManage'), terms: TERMS },
}

const PARENTS: Readonly<Record<Level, Level | undefined>> = { org: undefined, tenant: 'org', key: 'tenant' }

interface Shown {
  readonly id: string
  readonly source: string
  readonly orgId?: string
  readonly tenantId?: string
  readonly weight?: number
  readonly role?: string
  readonly terms?: { readonly canManage?: boolean }
  readonly secrets?: ReadonlyArray<ShownSecret>
}

export interface ShownSecret {
  readonly hash: string
  readonly endsAtMs?: number
  readonly lastUsedAtMs?: number
}

interface Changed {
  readonly revision: number
  readonly secret?: string
}

function listCommand(level: Level): Command {
  const parent = PARENTS[level]
  return {
    name: `${level}s list`,
    summary: `the ${level}s of a running server`,
    about:
      'Those of the configuration file and those that were made at run time, in order of their ids; 1,000 at most.',
    flags: {
      ...(parent !== undefined && { [parent]: text('ID', `only those of this ${parent}`) }),
      after: text('ID', 'only ids after this one'),
      ...TENANCY_FLAGS,
    },
    examples: [`spillway ${level}s list`],
    async run(flags, io) {
      const query = new URLSearchParams({ limit: '1000' })
      for (const name of ['after', ...(parent === undefined ? [] : [parent])]) {
        const value = textFlag(flags, name)
        if (value !== undefined) query.set(name, value)
      }
      const answer = await new TenancyClient(flags).call<{ data: Shown[] }>('GET', `/${level}s?${query.toString()}`)
      const heading = [
        level.toUpperCase(),
        ...(parent === undefined ? [] : [parent.toUpperCase()]),
        'FROM',
        'WEIGHT',
        ...(level === 'key' ? ['MANAGES AS', 'SECRETS', 'LAST USED'] : []),
      ]
      io.out(flags['json'] === true ? JSON.stringify(answer.data) : columnsOf([heading, ...answer.data.map(rowOf)]))
      return 0
    },
  }
}

function rowOf({ id, orgId, tenantId, source, weight, role, terms, secrets }: Shown): string[] {
  const parentId = orgId ?? tenantId
  const first = [id, ...(parentId === undefined ? [] : [parentId]), source, String(weight ?? '-')]
  if (secrets === undefined) return first
  const manages = terms?.canManage === true ? (role ?? '-') : '-'
  return [...first, manages, secrets.map(({ hash }) => hash).join(' '), lastUseOf(secrets)]
}

/** One time for each secret, in their order. */
export function lastUseOf(secrets: readonly ShownSecret[]): string {
  return secrets
    .map(({ lastUsedAtMs: atMs }) => (atMs === undefined ? '-' : `${new Date(atMs).toISOString().slice(0, 16)}Z`))
    .join(' ')
}

interface EditOptions {
  readonly level: Level
  readonly verb: string
  readonly summary: string
  readonly flags?: Readonly<Record<string, Flag>>
  readonly example?: string
  readonly call: (id: string, flags: FlagValues) => { method: 'POST' | 'PATCH' | 'DELETE'; path: string; body?: object }
}

function editCommand({ level, verb, summary, flags: more = {}, example = '', call }: EditOptions): Command {
  const name = `${level}s ${verb}`
  const typed = `${name} ${level === 'org' ? 'acme' : level === 'tenant' ? 'shop' : 'web'}${example} --because "contract 17"`
  return {
    name,
    summary,
    about:
      'In force when the command returns, and kept over restarts. What the configuration file names is changed there.',
    argument: 'ID',
    flags: { ...more, ...BECAUSE_FLAG, ...TENANCY_FLAGS },
    examples: [`spillway ${typed}`],
    async run(flags, io) {
      const id = argumentOf(flags, level, typed)
      const because = becauseOf(flags)
      const { method, path, body = {} } = call(id, flags)
      const answer = await new TenancyClient(flags).call<Changed>(method, path, { ...body, because })
      io.out(flags['json'] === true ? JSON.stringify(answer) : describe(answer))
      return 0
    },
  }
}

function describe({ revision, secret }: Changed): string {
  const done = `Done: revision ${revision}.`
  return secret === undefined ? done : `${done} The secret is shown once and stored nowhere:\n\n  ${secret}`
}

/** The fields that were typed. */
function fieldsOf(level: Level, flags: FlagValues): Record<string, unknown> {
  const typed = Object.keys(FIELDS[level]).flatMap((name): Array<[string, unknown]> => {
    const value = textFlag(flags, name)
    if (value === undefined) return []
    if (name === 'weight') return [[name, Number(value)]]
    if (name === 'slos') return [[name, value.split(',')]]
    return [[name, name in JSON_EXAMPLES ? jsonOf(name as keyof typeof JSON_EXAMPLES, value) : value]]
  })
  return Object.fromEntries(typed)
}

const JSON_EXAMPLES = { terms: '{"models":["m1"]}', storing: '{"ttlS":86400}', screening: '{"pii":"redact"}' } as const

function jsonOf(name: keyof typeof JSON_EXAMPLES, value: string): unknown {
  try {
    return JSON.parse(value)
  } catch {
    throw new UsageError(`--${name} is no JSON: ${value}. Try: --${name} '${JSON_EXAMPLES[name]}'`)
  }
}

function parentOf(level: Level, flags: FlagValues): Record<string, string> {
  const parent = PARENTS[level]
  if (parent === undefined) return {}
  const id = textFlag(flags, parent)
  if (id === undefined) throw new UsageError(`--${parent} is missing: in which ${parent}?`)
  return { [`${parent}Id`]: id }
}

/** `keys create` makes a key for the configuration file, without a server; a key of a running server is added. */
function levelCommands(level: Level): Command[] {
  const parent = PARENTS[level]
  const verb = level === 'key' ? 'add' : 'create'
  const inParent = parent === undefined ? {} : { [parent]: text('ID', `the ${parent} that it belongs to (required)`) }
  const example = level === 'org' ? ' --slos steady' : level === 'tenant' ? ' --org acme' : ' --tenant shop'
  return [
    listCommand(level),
    editCommand({
      level,
      verb,
      summary: `a new ${level} on a running server`,
      flags: { ...inParent, ...FIELDS[level] },
      example,
      call: (id, flags) => ({
        method: 'POST',
        path: `/${level}s`,
        body: { id, ...parentOf(level, flags), ...fieldsOf(level, flags) },
      }),
    }),
    editCommand({
      level,
      verb: 'change',
      summary: `other terms for the ${level}`,
      flags: FIELDS[level],
      example: ' --weight 2',
      call: (id, flags) => ({ method: 'PATCH', path: under(`/${level}s`, id), body: fieldsOf(level, flags) }),
    }),
    editCommand({
      level,
      verb: 'remove',
      summary: `remove the ${level}${level === 'tenant' ? ' with its keys' : level === 'org' ? ', which has no tenants any more' : ' with its secrets'}`,
      call: (id) => ({ method: 'DELETE', path: under(`/${level}s`, id) }),
    }),
  ]
}

export const tenancyCommands: readonly Command[] = [
  ...levelCommands('org'),
  ...levelCommands('tenant'),
  ...levelCommands('key'),
  editCommand({
    level: 'key',
    verb: 'rotate',
    summary: 'a new secret; the one before lives on for the grace',
    flags: { grace: text('MINUTES', 'how long the old secret lives on; a day if absent, 0 ends it at once') },
    example: ' --grace 60',
    call(id, flags) {
      const grace = textFlag(flags, 'grace')
      return {
        method: 'POST',
        path: `${under('/keys', id)}/rotate`,
        body: grace === undefined ? {} : { graceMs: Number(grace) * 60_000 },
      }
    },
  }),
  editCommand({
    level: 'key',
    verb: 'revoke',
    summary: 'end one secret of the key at once',
    flags: { secret: text('HASH', 'beginning of the secret’s hash, as "spillway keys list" shows it (required)') },
    example: ' --secret 1f2e3d4c',
    call(id, flags) {
      const hash = textFlag(flags, 'secret')
      if (hash === undefined) throw new UsageError('--secret is missing: which one? "spillway keys list" shows them.')
      return { method: 'DELETE', path: `${under('/keys', id)}/secrets/${encodeURIComponent(hash)}` }
    },
  }),
]
