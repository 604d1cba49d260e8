import { readConfigFile } from '../config/fs-config-file.ts'
import { columnsOf } from './columns.ts'
import { type Command, type FlagValues, numberFlag, textFlag, UsageError } from './command.ts'
import { ADMIN_FLAGS, AdminClient, argumentOf, BECAUSE_FLAG, becauseOf, under } from './http-admin-client.ts'

/** `spillway models …` shows and changes what the running server serves. */
interface WireReplica {
  readonly id: string
  readonly url?: string
  readonly health: string
  readonly deniedBecause?: string
  readonly running: number
}

interface WirePool {
  readonly id: string
  readonly source: string
  readonly release: string
  readonly region: string
  readonly backend: string
  readonly isClosing: boolean
  readonly waiting: number
  readonly running: number
  readonly replicas: readonly WireReplica[]
}

interface WireModel {
  readonly name: string
  readonly source: string
  readonly aliases: readonly string[]
  readonly contextTokensMax: number
  readonly fallback?: string
  readonly releases: ReadonlyArray<{
    readonly id: string
    readonly version: string
    readonly source: string
    readonly artifact?: string
    readonly labels?: readonly string[]
    readonly price?: { readonly inputPerMillion: number; readonly outputPerMillion: number }
  }>
  readonly pools: readonly WirePool[]
}

interface WireChange {
  readonly revision: number
  readonly atMs: number
  readonly by: string
  readonly because: string
  readonly kind: string
  readonly name: string
  readonly before?: unknown
  readonly after?: unknown
}

const isReady = ({ health }: WireReplica): boolean => ['warming', 'steady', 'trial'].includes(health)

export const modelsListCommand: Command = {
  name: 'models list',
  summary: 'show the models of the running server, their releases and their replicas',
  about: 'One line per model. FROM is "file" for the configuration file, or "registry" for models added at run time.',
  flags: ADMIN_FLAGS,
  examples: ['spillway models list', 'spillway models list --url https://llm.example.org --key sk-… --json'],
  async run(flags, io) {
    const { data } = await new AdminClient(flags).call<{ data: readonly WireModel[] }>('GET', '/models')
    if (flags['json'] === true) {
      io.out(JSON.stringify(data))
      return 0
    }
    const rows = data.map((model) => {
      const replicas = model.pools.flatMap((pool) => pool.replicas)
      return [
        model.name,
        model.source,
        model.releases.map(({ version }) => version).join(', '),
        `${replicas.filter(isReady).length} of ${replicas.length} ready`,
        String(model.contextTokensMax),
        model.fallback ?? '–',
      ]
    })
    io.out(columnsOf([['MODEL', 'FROM', 'RELEASES', 'REPLICAS', 'CONTEXT', 'FALLBACK'], ...rows]))
    return 0
  },
}

export const modelsShowCommand: Command = {
  name: 'models show',
  summary: 'show one model: releases, pools and every replica',
  about: 'Health is away, warming, steady, ejected, trial or draining.',
  argument: 'MODEL',
  flags: ADMIN_FLAGS,
  examples: ['spillway models show llama-8b'],
  async run(flags, io) {
    const name = argumentOf(flags, 'model', 'models show llama-8b')
    const model = await new AdminClient(flags).call<WireModel>('GET', under('/models', name))
    io.out(flags['json'] === true ? JSON.stringify(model) : describe(model))
    return 0
  },
}

function describe({ name, source, aliases, contextTokensMax, fallback, releases, pools }: WireModel): string {
  const versions = releases.map(({ version, source: from, artifact, labels, price }) => [
    version,
    from,
    price === undefined ? '–' : `${price.inputPerMillion} in, ${price.outputPerMillion} out a million`,
    labels?.join(', ') ?? '–',
    artifact ?? '–',
  ])
  const replicas = pools.flatMap((pool) =>
    pool.replicas.map((replica) => [
      pool.isClosing ? `${pool.id} (closing)` : pool.id,
      pool.release,
      pool.region,
      replica.id,
      replica.health,
      String(replica.running),
      replica.url ?? '–',
    ]),
  )
  return [
    `${name} (${source})`,
    `aliases ${aliases.join(', ') || '–'}; context ${contextTokensMax} tokens; fallback ${fallback ?? '–'}`,
    '',
    columnsOf([['RELEASE', 'FROM', 'PRICE', 'CALLED', 'ARTIFACT'], ...versions]),
    '',
    replicas.length === 0
      ? 'No replica: add a pool with "spillway models add", or wait for discovery.'
      : columnsOf([['POOL', 'RELEASE', 'REGION', 'REPLICA', 'HEALTH', 'RUNNING', 'URL'], ...replicas]),
    ...pools.flatMap((pool) => pool.replicas).flatMap(deniedLines),
  ].join('\n')
}

const deniedLines = ({ id, deniedBecause }: WireReplica): string[] =>
  deniedBecause === undefined ? [] : ['', `${id} is denied: ${deniedBecause} Mend its key, address or quota.`]

export const modelsAddCommand: Command = {
  name: 'models add',
  summary: 'add a model, a release or replicas to the running server; kept over restarts',
  about:
    'Adds one model with one pool by flags, or a file with model, releases and pools, written as in the configuration\n' +
    'file. A model is served as soon as a replica has answered its probe.',
  argument: 'MODEL',
  flags: {
    from: { type: 'string', short: 'f', value: 'FILE', meaning: 'YAML with model, releases and pools' },
    replica: {
      type: 'string',
      short: 'r',
      value: 'URL',
      meaning: 'an engine\u2019s address, up to /v1; may be repeated',
      multiple: true,
    },
    release: { type: 'string', value: 'VERSION', meaning: 'the version that these replicas run' },
    pool: { type: 'string', value: 'ID', meaning: 'the pool\u2019s name (default: MODEL, or MODEL-VERSION)' },
    upstream: { type: 'string', value: 'NAME', meaning: 'the engine\u2019s own name for the model' },
    context: { type: 'string', value: 'TOKENS', meaning: 'most tokens of prompt and answer together' },
    fallback: { type: 'string', value: 'MODEL', meaning: 'the smaller model that answers under pressure' },
    ...BECAUSE_FLAG,
    ...ADMIN_FLAGS,
  },
  examples: [
    'spillway models add qwen-7b --replica http://gpu-4:8000/v1 --because "asked for by search"',
    'spillway models add llama-8b --release 2 --replica http://gpu-5:8000/v1 --because "fine-tuned in May"',
    'spillway models add --from qwen.yaml --because "asked for by search"',
  ],
  async run(flags, io) {
    const because = becauseOf(flags)
    const client = new AdminClient(flags)
    const given = textFlag(flags, 'from') === undefined ? await fromFlags(flags, client) : fromFile(flags)
    const answer = await client.call<{ revision: number }>('POST', '/models', { ...given, because })
    io.out(flags['json'] === true ? JSON.stringify(answer) : `Done: revision ${answer.revision}.`)
    return 0
  },
}

function fromFile(flags: FlagValues): object {
  const { tree } = readConfigFile(textFlag(flags, 'from') as string)
  const { model, releases, pools, ...unknown } = tree as Record<string, unknown>
  const [extra] = Object.keys(unknown)
  if (extra !== undefined)
    throw new UsageError(`the file has "${extra}"; only model, releases and pools are known here.`)
  return {
    ...(model !== undefined && { model }),
    ...(releases !== undefined && { releases }),
    ...(pools !== undefined && { pools }),
  }
}

/** A model that exists gets one more release and one more pool. */
async function fromFlags(flags: FlagValues, client: AdminClient): Promise<object> {
  const name = argumentOf(flags, 'model', 'models add qwen-7b --replica http://gpu-4:8000/v1 --because …')
  const replicas = [flags['replica'] ?? []].flat() as string[]
  const version = textFlag(flags, 'release')
  const { data } = await client.call<{ data: readonly WireModel[] }>('GET', '/models')
  const known = data.find((model) => model.name === name)
  const isNewRelease = version !== undefined && known?.releases.some((release) => release.version === version) !== true
  const context = numberFlag(flags, 'context', { min: 1, isWhole: true })
  const fallback = textFlag(flags, 'fallback')
  const upstreamModel = textFlag(flags, 'upstream')
  const terms = {
    ...(context !== undefined && { contextTokensMax: context }),
    ...(fallback !== undefined && { fallback }),
  }
  const pool = {
    id: textFlag(flags, 'pool') ?? (version === undefined ? name : `${name}-${version}`),
    model: name,
    ...(version !== undefined && { release: version }),
    backend: { kind: 'http-openai', ...(upstreamModel !== undefined && { upstreamModel }) },
    replicas,
  }
  return {
    ...(known === undefined && { model: { name, ...terms, ...(version !== undefined && { stable: version }) } }),
    ...(isNewRelease && { releases: [{ model: name, version, ...(known !== undefined && terms) }] }),
    ...(replicas.length > 0 && { pools: [pool] }),
  }
}

export const modelsRemoveCommand: Command = {
  name: 'models remove',
  summary: 'remove a model, a release or a pool that was added; running answers finish',
  about:
    'To remove what the configuration file names, change the file. A model is removed with its releases and pools.',
  argument: 'NAME',
  flags: {
    release: { type: 'boolean', meaning: 'NAME is a release, as MODEL@VERSION' },
    pool: { type: 'boolean', meaning: 'NAME is a pool' },
    replica: { type: 'boolean', meaning: 'NAME is a replica' },
    ...BECAUSE_FLAG,
    ...ADMIN_FLAGS,
  },
  examples: [
    'spillway models remove qwen-7b --because "nobody uses it"',
    'spillway models remove qwen-7b-2 --pool --because "moved to the other rack"',
  ],
  async run(flags, io) {
    const name = argumentOf(flags, 'model', 'models remove qwen-7b --because "nobody uses it"')
    const because = becauseOf(flags)
    const kinds = ['release', 'pool', 'replica'].filter((kind) => flags[kind] === true)
    if (kinds.length > 1) throw new UsageError(`--${kinds.join(' and --')} exclude each other. Give one of them.`)
    const path = under(`/${kinds[0] ?? 'model'}s`, name)
    const answer = await new AdminClient(flags).call<{ revision: number }>('DELETE', path, { because })
    io.out(flags['json'] === true ? JSON.stringify(answer) : `Done: revision ${answer.revision}.`)
    return 0
  },
}

export const modelsHistoryCommand: Command = {
  name: 'models history',
  summary: 'show who changed what and why, newest first',
  about:
    'NAME is a model (with its releases, pools and replicas) or a pool (with its replicas); without NAME, all changes\n' +
    'are shown. Draining is not kept.',
  argument: 'NAME',
  flags: {
    limit: { type: 'string', short: 'n', value: 'N', meaning: 'number of changes (default 20)' },
    ...ADMIN_FLAGS,
  },
  examples: ['spillway models history', 'spillway models history llama-8b --limit 100 --json'],
  async run(flags, io) {
    const limit = numberFlag(flags, 'limit', { min: 1, max: 1_000, isWhole: true }) ?? 20
    const name = textFlag(flags, 'argument')
    const query = `?limit=${limit}${name === undefined ? '' : `&name=${encodeURIComponent(name)}`}`
    const { data } = await new AdminClient(flags).call<{ data: readonly WireChange[] }>('GET', `/changes${query}`)
    if (flags['json'] === true) io.out(JSON.stringify(data))
    else if (data.length === 0) io.out('Nothing was changed yet.')
    else io.out(columnsOf([['WHEN', 'REVISION', 'WHO', 'WHAT', 'NAME', 'WHY'], ...data.map(changeRow)]))
    return 0
  },
}

function changeRow({ atMs, revision, by, kind, name, because, before, after }: WireChange): string[] {
  const what = after === undefined ? 'removed' : before === undefined ? 'added' : 'changed'
  const when = new Date(atMs).toISOString().replace(/\.\d+Z$/, 'Z')
  return [when, String(revision), by, `${kind} ${what}`, name, because]
}
