import { join, resolve } from 'node:path'
import { argv, exit } from 'node:process'
import { toScreening } from '../../src/config/to-screening.ts'
import type { ScreeningTerms } from '../../src/domain/screening.ts'
import { type Finding, quantile, tell } from './tell.ts'

/**
 * Claim: all of the embedded screening of what a client sends (names apart) costs at most 40 µs of CPU time for each
 * kilobyte of prose or code, and a prompt of 128 kB stops the event loop for at most 2 ms at a time.
 *
 * All of it: the JSON is read, every string normalised and searched for personal data and secrets, and the prompt
 * normalised and scored by the models of injection, injection in passages and toxicity. Each part is told apart, too. Parts
 * are timed in rounds, each in turn, so that a busy machine disturbs all alike; the least of the rounds is told.
 *
 *     node bench/micro/screening.ts [--json] [--quick] [--against OTHER_CHECKOUT]
 *
 * `--against`: the same in the code of another checkout, side by side in every round; the ratio is this one's time to the
 * other's, the median of all rounds with its quartiles.
 */
const PROSE = `A weir is a low wall across a river. It raises the level of the water upstream, so that boats can pass and mills
can turn. When the river rises, water flows over the top; nothing has to be opened or closed. Engineers measure the flow from
the height of the water above the crest: twice the height gives almost three times the flow. In 1833 a table of such figures
was printed for the first time, and 40 years later every canal company had one. The design is simple, cheap and safe.\n\n`
const CODE = `function add(a: number, b: number): number {\n  return a + b\n}\n\nconst total = items.map((item) => item.price * 2)
  .filter((price) => price < limit_2)\nif (a<b && total[0] !== undefined) console.log(\`\${total[0]} of \${items.length}\`)\n\n`
const VALUES = `We wrote to jane.doe@example.com and called +1 415-555-2671 twice. The card 4111 1111 1111 1111 was charged; the
refund goes to DE89 3704 0044 0532 0130 00. Our server at 192.168.10.24 answered at 10:45.\n`
const TEXTS: Readonly<Record<string, string>> = { prose: PROSE, code: CODE, values: VALUES, 'number rows': '12-34 ' }
const SIZES = [1_000, 8_000, 128_000]
const CPU_US_MAX = 40
const TURN_MS_MAX = 2
const ROUNDS = argv.includes('--quick') ? 5 : 15
const MODELS = ['injection', 'passage-injection', 'toxicity'] as const

const textOf = (text: string, length: number): string =>
  // A copy in one piece, as a decoder makes it: what `repeat` makes is read more slowly.
  Buffer.from(text.repeat(Math.ceil(length / text.length)).slice(0, length)).toString()

const terms = toScreening({ pii: 'redact', secrets: 'redact' }) as ScreeningTerms
const bodyOf = (content: string): Buffer =>
  Buffer.from(JSON.stringify({ model: 'sim', stream: true, messages: [{ role: 'user', content }] }))

/** The screening of one checkout. */
async function screeningIn(root: string) {
  const load = async <T>(path: string): Promise<T> => (await import(join(root, 'src', path))) as T
  const { makeFinders } = await load<typeof import('../../src/safety/entity-finders.ts')>('safety/entity-finders.ts')
  const { EntityFinder } = await load<typeof import('../../src/safety/entities/entity-finder.ts')>(
    'safety/entities/entity-finder.ts',
  )
  const { normalise } = await load<typeof import('../../src/safety/normalise.ts')>('safety/normalise.ts')
  const { screenBody } = await load<typeof import('../../src/gateway/screen-body.ts')>('gateway/screen-body.ts')
  const { loadSafetyModels } = await load<typeof import('../../src/safety/models/fs-safety-models.ts')>(
    'safety/models/fs-safety-models.ts',
  )
  const models = loadSafetyModels()
  const screens = { finderOf: makeFinders(), isModel: (name: string) => name === 'sim', salt: 'salt' }
  const ask = { dialect: 'chat', tenantId: 'shop', terms } as const
  const pii = new EntityFinder({ screens: ['pii'] })
  const secrets = new EntityFinder({ screens: ['secrets'] })
  const both = new EntityFinder({ screens: ['pii', 'secrets'] })
  const parts: Readonly<Record<string, Part>> = {
    normalise: (text) => normalise(text),
    'personal data': (text) => pii.find(text),
    secrets: (text) => secrets.find(text),
    'both rules': (text) => both.find(text),
    injection: (text) => models.score(text, ['injection']),
    'all models': (text) => models.score(text, MODELS),
    body: (_text, body) => screenBody(screens, ask, body),
    all: (text, body) => {
      const screened = screenBody(screens, ask, body)
      models.score(normalise(text).text, MODELS)
      return screened
    },
  }
  /** One screening with its pauses, as the gateway does it. */
  const inTurns = async (text: string, body: Buffer): Promise<void> => {
    await screenBody(screens, ask, body)
    for (const turns = models.scoreInTurns(normalise(text).text, MODELS); turns.next().done !== true; )
      await new Promise((resume) => setImmediate(resume))
  }
  return { parts, inTurns }
}
type Part = (text: string, body: Buffer) => unknown
type Screens = Awaited<ReturnType<typeof screeningIn>>

/** CPU time of one measurement at least: the clock of a thread goes in steps of a few milliseconds. */
const MEASURED_US_MIN = 40_000

/** Microseconds of CPU time for a kilobyte. */
async function costOf(call: Part, text: string, body: Buffer): Promise<number> {
  const calls = Math.max(1, Math.round(64_000 / text.length))
  let done = 0
  let us = 0
  const before = process.threadCpuUsage()
  while (us < MEASURED_US_MIN) {
    for (let i = 0; i < calls; i++) {
      const result = call(text, body)
      if (result instanceof Promise) await result
    }
    done += calls
    const { user, system } = process.threadCpuUsage(before)
    us = user + system
  }
  return us / done / (text.length / 1_000)
}

/** The longest time without a pause, in milliseconds. */
async function turnMsOf({ inTurns }: Screens, text: string, body: Buffer): Promise<number> {
  let from = performance.now()
  let most = 0
  let isDone = false
  const watch = (): void => {
    const now = performance.now()
    most = Math.max(most, now - from)
    from = now
    if (!isDone) setImmediate(watch)
  }
  setImmediate(watch)
  await inTurns(text, body)
  isDone = true
  watch()
  return most
}

interface Line {
  readonly text: string
  readonly size: number
  readonly part: string
  readonly unit: string
  /** By checkout, then by round. */
  readonly rounds: readonly number[][]
}

async function measured(all: readonly Screens[]): Promise<Line[]> {
  const lines: Line[] = []
  for (const [name, pattern] of Object.entries(TEXTS))
    for (const size of SIZES) {
      const text = textOf(pattern, size)
      const body = bodyOf(text)
      for (const part of Object.keys(all[0]!.parts)) {
        const rounds: number[][] = all.map(() => [])
        for (let round = 0; round < ROUNDS; round++)
          for (const [i, { parts }] of all.entries()) rounds[i]!.push(await costOf(parts[part]!, text, body))
        lines.push({ text: name, size, part, unit: 'µs/kB', rounds })
      }
      if (size <= 8_000) continue
      const rounds: number[][] = all.map(() => [])
      for (let round = 0; round < 2 * ROUNDS; round++)
        for (const [i, screens] of all.entries()) rounds[i]!.push(await turnMsOf(screens, text, body))
      lines.push({ text: name, size, part: 'longest turn', unit: 'ms', rounds })
    }
  return lines
}

const boundOf = ({ text, part }: Line): number | undefined => {
  if (part === 'longest turn') return TURN_MS_MAX
  return part === 'all' && (text === 'prose' || text === 'code') ? CPU_US_MAX : undefined
}

const nameOf = ({ text, size, part }: Line): string => `${text}, ${size / 1_000} kB: ${part}`
const sortedRatios = ([ours, theirs]: readonly number[][]): Float64Array =>
  Float64Array.from(ours!, (value, i) => value / theirs![i]!).sort()

const findingOf = (line: Line): Finding => {
  const below = boundOf(line)
  const value = Math.min(...line.rounds[0]!)
  return { name: nameOf(line), value, unit: line.unit, ...(below !== undefined && { below }) }
}

function printSideBySide(lines: readonly Line[]): void {
  console.log(`${''.padEnd(36)}${'here'.padStart(9)}${'other'.padStart(9)}  unit   ratio (quartiles)`)
  for (const line of lines) {
    const [ours, theirs] = line.rounds.map((rounds) =>
      Math.min(...rounds)
        .toPrecision(3)
        .padStart(9),
    )
    const ratios = sortedRatios(line.rounds)
    const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => quantile(ratios, share).toFixed(2))
    console.log(`${nameOf(line).padEnd(36)}${ours}${theirs}  ${line.unit.padEnd(5)}  ${middle} (${low} – ${high})`)
  }
}

const against = argv.indexOf('--against')
const other = against < 0 ? undefined : argv[against + 1]
if (against >= 0 && other === undefined) {
  console.error('--against needs the folder of another checkout of this project')
  exit(2)
}
const roots = [join(import.meta.dirname, '../..'), ...(other === undefined ? [] : [resolve(other)])]
const lines = await measured(await Promise.all(roots.map(screeningIn)))
if (other === undefined) tell('screening', lines.map(findingOf))
else if (argv.includes('--json'))
  console.log(
    JSON.stringify(
      lines.map((line) => ({ ...findingOf(line), rounds: line.rounds, ratios: [...sortedRatios(line.rounds)] })),
    ),
  )
else printSideBySide(lines)
