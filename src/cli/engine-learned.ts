import type { learnedView } from '../control/learned-view.ts'
import { columnsOf } from './columns.ts'
import { type Command, textFlag, UsageError } from './command.ts'
import { ADMIN_FLAGS, AdminClient, argumentOf, under } from './http-admin-client.ts'

type LearnedPool = ReturnType<typeof learnedView>
type LearnedReplicaJson = LearnedPool['replicas'][number]

export const engineLearnedCommand: Command = {
  name: 'engine learned',
  summary: 'show what a running server has learned of a pool\u2019s engines',
  about:
    'POOL is the id that "spillway models show" lists. Step times of engines behind a URL are learned from their answers.\n' +
    '--write makes a profile of them, for "backend.profile" of a simulated pool, "spillway simulate" and "spillway engine\n' +
    '--profile FILE.json": of the replica that most was seen of, or of --replica.',
  argument: 'POOL',
  flags: {
    replica: { type: 'string', value: 'REPLICA', meaning: 'only this replica' },
    write: { type: 'string', short: 'w', value: 'FILE.json', meaning: 'write a profile of what was learned' },
    ...ADMIN_FLAGS,
  },
  examples: ['spillway engine learned llama-8b-local', 'spillway engine learned llama-8b-local --write learned.json'],
  async run(flags, io) {
    const pool = argumentOf(flags, 'pool', 'engine learned llama-8b-local')
    const path = textFlag(flags, 'write')
    if (path !== undefined && !path.endsWith('.json'))
      throw new UsageError(`--write is "${path}". Give a name that ends in .json: profiles are found by that.`)
    const learned = await new AdminClient(flags).call<LearnedPool>('GET', `${under('/pools', pool)}/learned`)
    const replicas = chosen(learned, textFlag(flags, 'replica'))
    io.out(flags['json'] === true ? JSON.stringify({ ...learned, replicas }) : textOf(learned, replicas))
    if (path === undefined) return 0
    const best = replicas.toSorted((a, b) => b.rows - a.rows)[0]
    if (best === undefined || best.rows === 0)
      throw new UsageError(`nothing was learned of ${pool} yet, so no profile was written. Send it some requests.`)
    const { writeProfile } = await import('./fs-write-profile.ts')
    const { profile, meanError, maxError } = writeProfile(path, best)
    const nearness = `within ${percent(meanError)} of what was learned on the average of ordinary loads, ${percent(maxError)} at most`
    if (flags['json'] !== true) io.out(`\nWrote ${path}, like ${profile.like} but for its steps: ${nearness}.`)
    return 0
  },
}

function chosen({ pool, replicas }: LearnedPool, id: string | undefined): readonly LearnedReplicaJson[] {
  if (id === undefined) return replicas
  const one = replicas.filter((replica) => replica.id === id)
  if (one.length > 0) return one
  throw new UsageError(
    `${pool} has no replica ${id}. Known: ${replicas.map((replica) => replica.id).join(', ') || 'none'}.`,
  )
}

/** Replicas side by side: more would not fit a terminal. */
const ABREAST = 3

function textOf({ pool, isLearned }: LearnedPool, replicas: readonly LearnedReplicaJson[]): string {
  if (!isLearned) return `The step times of ${pool} are declared by its profile: nothing is learned.`
  if (replicas.length === 0) return `${pool} has no replicas.`
  const tables: string[] = []
  for (let i = 0; i < replicas.length; i += ABREAST) {
    const facts = replicas.slice(i, i + ABREAST).map(factsOf)
    tables.push(columnsOf(facts[0]!.map(([name], row) => [name, ...facts.map((fact) => fact[row]![1])])))
  }
  return tables.join('\n\n')
}

function factsOf(replica: LearnedReplicaJson): ReadonlyArray<readonly [string, string]> {
  const { step, firstToken, ceiling, kv, rows, changes } = replica
  return [
    ['replica', replica.id],
    ['believed', replica.isTrusted ? 'yes' : 'not yet'],
    ['learned from', `${count(rows)} stretches of answers`],
    ['engine changed', changes === 0 ? 'never' : `${changes} times`],
    ['thought to be like', replica.prior],
    ['step', time(step.baseUs)],
    ['  + a sequence', time(step.perSequenceUs)],
    ['  + 1,000 tokens of context', time(1_000 * step.perContextTokenUs)],
    ['  + 1,000 prompt tokens', time(1_000 * step.perPromptTokenUs)],
    ['first token alone', time(firstToken.baseUs)],
    [`  + 1,000 tokens up to ${count(firstToken.knotTokens)}`, time(1_000 * firstToken.perTokenUs)],
    ['  + 1,000 tokens beyond', time(1_000 * firstToken.perTokenBeyondUs)],
    ['  + 1,000,000 pairs of tokens', time(1_000_000 * firstToken.perPairUs)],
    ['error of the time per token', percent(replica.tokenError)],
    ['error of the first token', percent(replica.firstTokenError)],
    ['seen', `up to ${count(replica.sequencesSeen)} sequences`],
    ['outside what was seen', `beyond ${count(replica.extrapolatedBeyond)} sequences`],
    ['ceiling', `${count(ceiling.sequencesMax)} sequences`],
    ['  because', ceiling.because],
    ['KV memory', kv === null ? 'unknown' : `${count(kv.tokensMax)} tokens`],
    [
      '  because',
      kv === null ? 'the engine does not tell' : kv.isTold ? 'told by the engine' : 'learned from its usage',
    ],
  ]
}

const count = (value: number): string => Math.round(value).toLocaleString('en-US')

const percent = (ratio: number | null): string => (ratio === null ? 'unknown' : `${(100 * ratio).toFixed(1)} %`)

function time(us: number): string {
  return us >= 1_000 ? `${(us / 1_000).toPrecision(3)} ms` : `${us.toPrecision(3)} \u00b5s`
}
