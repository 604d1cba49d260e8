import { columnsOf } from './columns.ts'
import { type Command, type Flag, textFlag, UsageError } from './command.ts'
import { ADMIN_FLAGS, AdminClient, argumentOf, BECAUSE_FLAG, becauseOf, under } from './http-admin-client.ts'
import { rolloutOutputs } from './rollout-outputs.ts'

/** `spillway rollout …` shows and changes the rollouts of the running server. */
interface WireRollout {
  readonly model: string
  readonly stable: string
  readonly canary?: string
  readonly phase: string
  readonly percent: number
  readonly isPaused: boolean
  readonly verdict?: {
    readonly kind: string
    readonly because: string
    readonly evidence?: ReadonlyArray<Readonly<Record<string, unknown>>>
  }
}

const HEADING = ['MODEL', 'STABLE', 'CANARY', 'PHASE', 'SHARE', 'PAUSED', 'JUDGE']

const rowOf = ({ model, stable, canary, phase, percent, isPaused, verdict }: WireRollout): string[] => [
  model,
  stable,
  canary ?? '–',
  phase,
  `${Number(percent.toFixed(1))} %`,
  isPaused ? 'yes' : 'no',
  verdict === undefined ? '–' : `${verdict.kind}: ${verdict.because}`,
]

const rolloutShow: Command = {
  name: 'rollout show',
  summary: 'show the release on trial, its share of requests, and the judge\u2019s verdict',
  about: 'With MODEL, the judge\u2019s numbers are shown too; without, one line per model.',
  argument: 'MODEL',
  flags: ADMIN_FLAGS,
  examples: ['spillway rollout show', 'spillway rollout show llama-8b --json'],
  async run(flags, io) {
    const model = textFlag(flags, 'argument')
    const client = new AdminClient(flags)
    const one = model === undefined ? undefined : await client.call<WireRollout>('GET', under('/rollouts', model))
    const all = one === undefined ? (await client.call<{ data: WireRollout[] }>('GET', '/rollouts')).data : [one]
    if (flags['json'] === true) {
      io.out(JSON.stringify(one ?? all))
      return 0
    }
    const evidence = one?.verdict?.evidence ?? []
    const keys = Object.keys(evidence[0] ?? {})
    const numbers = evidence.map((row) => keys.map((key) => cell(row[key])))
    const table = columnsOf([HEADING, ...all.map(rowOf)])
    const heading = keys.map((key) => key.toUpperCase())
    io.out(numbers.length === 0 ? table : `${table}\n\n${columnsOf([heading, ...numbers])}`)
    return 0
  },
}

const cell = (value: unknown): string =>
  typeof value === 'number' ? String(Number(value.toPrecision(4))) : typeof value === 'string' ? value : '–'

interface Step {
  readonly name: string
  readonly command: string
  readonly summary: string
  readonly about: string
  readonly flags?: Readonly<Record<string, Flag>>
  readonly example: string
}

const stepCommand = ({ name, command, summary, about, flags = {}, example }: Step): Command => ({
  name,
  summary,
  about,
  argument: 'MODEL',
  flags: { ...flags, ...BECAUSE_FLAG, ...ADMIN_FLAGS },
  examples: [example],
  async run(given, io) {
    const model = argumentOf(given, 'model', example.replace(/^spillway /, ''))
    const because = becauseOf(given)
    const release = textFlag(given, 'release')
    if (command === 'start' && release === undefined) {
      throw new UsageError('--release is missing. Give the version to try; "spillway models show" lists the versions.')
    }
    const client = new AdminClient(given)
    const body = { command, because, ...(release !== undefined && { release }) }
    const answer = await client.call('POST', under('/rollouts', model), body)
    const now = await client.call<WireRollout>('GET', under('/rollouts', model))
    io.out(
      given['json'] === true
        ? JSON.stringify({ ...(answer as object), rollout: now })
        : columnsOf([HEADING, rowOf(now)]),
    )
    return 0
  },
})

export const rolloutCommands: readonly Command[] = [
  rolloutShow,
  rolloutOutputs,
  stepCommand({
    name: 'rollout start',
    command: 'start',
    summary: 'try a release with a few requests; the judge promotes it or rolls it back',
    about: 'The release must have a pool with a healthy replica. A session stays with its release.',
    flags: { release: { type: 'string', value: 'VERSION', meaning: 'the release to try (required)' } },
    example: 'spillway rollout start llama-8b --release 2 --because "fine-tuned in May"',
  }),
  stepCommand({
    name: 'rollout pause',
    command: 'pause',
    summary: 'keep the share as it is: the judge goes on counting and changes nothing',
    about: 'Lasts until "spillway rollout resume".',
    example: 'spillway rollout pause llama-8b --because "the database is slow today"',
  }),
  stepCommand({
    name: 'rollout resume',
    command: 'resume',
    summary: 'let the judge decide again',
    about: 'For use after "pause", or after "undo", which pauses too.',
    example: 'spillway rollout resume llama-8b --because "the database is well again"',
  }),
  stepCommand({
    name: 'rollout promote',
    command: 'promote',
    summary: 'go one step further, without waiting for the judge',
    about: 'After the last step all requests get the new release.',
    example: 'spillway rollout promote llama-8b --because "looks good to all of us"',
  }),
  stepCommand({
    name: 'rollout roll-back',
    command: 'roll-back',
    summary: 'send all requests to the stable release, at once',
    about: 'Works after a promotion too.',
    example: 'spillway rollout roll-back llama-8b --because "it swears"',
  }),
  stepCommand({
    name: 'rollout undo',
    command: 'undo',
    summary: 'take back the last change, the judge\u2019s too, and pause the rollout',
    about: 'The rollout is paused so that the judge does not repeat its decision at once.',
    example: 'spillway rollout undo llama-8b --because "it was the database"',
  }),
]
