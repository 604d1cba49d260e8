import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../support/child.ts'
import { commandsOf, type DocCommand } from './doc-commands.ts'
import { BOUNDS, type DocsWorld, runServer } from './docs-world.ts'
import { type Figure, figureProblem, figuresOf, unreadFigures } from './figures.ts'
import { type Plan, planOf } from './plans.ts'
import { type Compared, compareWithRecord } from './recorded-tables.ts'
import { type Ran, runShell } from './run-shell.ts'

/** Everything that the pages say of one command: it is run once, wherever it stands. */
export interface Group {
  readonly text: string
  readonly commands: readonly DocCommand[]
  readonly figures: readonly Figure[]
  readonly mark: string | undefined
}

export interface Checked {
  readonly text: string
  readonly places: readonly string[]
  /** `suite`: the tests that it names are run by the suite. `absent`: a program is not installed here. */
  readonly outcome: 'passed' | 'failed' | 'marked' | 'suite' | 'absent'
  readonly because: string
  readonly cpuSeconds: number
  readonly figures: number
}

const PAGES = [
  'README.md',
  'docs/recipes/*.md',
  'docs/architecture/traceability.md',
  'docs/architecture/questions.md',
  'docs/results.md',
]
/** Processor time after which a long command counts as begun. */
const BEGUN_CPU_S = 1
/** The exit code of a shell whose command reached that. */
const OUT_OF_CPU = 152
/** How much of what it printed is shown of a command that failed. */
const SHOWN_CHARS = 400

export function readGroups(): Group[] {
  const groups = new Map<string, { commands: DocCommand[]; figures: Figure[] }>()
  const at = (text: string) => {
    const known = groups.get(text) ?? { commands: [], figures: [] }
    groups.set(text, known)
    return known
  }
  for (const page of PAGES.flatMap((pattern) => globSync(pattern, { cwd: ROOT }).sort())) {
    const markdown = readFileSync(join(ROOT, page), 'utf8')
    const [unread] = unreadFigures(markdown)
    if (unread !== undefined) throw new Error(`${page}: ${unread} is not read as a figure`)
    const commands = commandsOf(page, markdown)
    for (const command of commands) at(command.text).commands.push(command)
    for (const figure of figuresOf(page, markdown, commands)) at(figure.command).figures.push(figure)
  }
  return [...groups].map(([text, { commands, figures }]) => {
    if (commands.length === 0) throw new Error(`a figure of "${text}", which is no command of any page`)
    // A mark at one of its places is enough.
    return { text, commands, figures, mark: commands.find(({ mark }) => mark !== undefined)?.mark }
  })
}

export async function checkGroup(group: Group, world: DocsWorld, isFull: boolean): Promise<Checked> {
  const places = group.commands.map(({ page, line }) => `${page}:${line}`)
  const told = (outcome: Checked['outcome'], because = '', cpuSeconds = 0, figures = 0): Checked => ({
    text: group.text,
    places,
    outcome,
    because,
    cpuSeconds,
    figures,
  })
  if (group.mark !== undefined) return told('marked', group.mark)
  const plan = planOf(group, world.served, isFull)
  const shell = localised(plan, world)
  if (plan.way === 'files') {
    const lost = missingFiles(group.text)
    return lost.length === 0 ? told('suite') : told('failed', `no file ${lost.join(', ')}`)
  }
  const config = /--config (\S+)/.exec(shell)?.[1]
  const [first] = group.commands as readonly [DocCommand, ...DocCommand[]]
  if (config !== undefined) world.writeConfig(first.page, first.line, config)
  const place = world.place(plan.server)
  if (plan.way === 'serves') {
    const ran = await runServer(shell, place)
    if (!ran.isReady) return told('failed', `is not ready: ${tail(ran)}`, ran.cpuSeconds)
    return ran.exitCode === 0 || hasStopped(shell, ran)
      ? told('passed', '', ran.cpuSeconds)
      : told('failed', `ends with ${ran.exitCode}: ${tail(ran)}`, ran.cpuSeconds)
  }
  if (plan.way === 'begins') {
    // The same script with the same options begins in the same way, whatever their values.
    const start = shell.replaceAll(/(?<=--\w+ )\S+|--json/g, '').trim()
    if (world.begun.has(start)) return told('passed', 'began as another one')
    world.begun.add(start)
    const ran = await beginShell(shell, place)
    return ran.hasBegun
      ? told('passed', 'began', ran.cpuSeconds)
      : told('failed', `ends with ${ran.exitCode}: ${tail(ran)}`, ran.cpuSeconds)
  }
  const figures = plan.isShort ? [] : group.figures
  const wantsJson = figures.some(({ source }) => !source.includes('/') || source.includes(' / '))
  const ran = await runShell(
    wantsJson && !shell.includes('--json') ? `${shell} --json` : shell,
    place,
    isFull ? FULL : BOUNDS,
  )
  if (ran.exitCode === 127) return told('absent', ran.err.trim(), ran.cpuSeconds)
  const problems = [
    ...(ran.exitCode === 0 ? [] : [`exit code ${ran.exitCode ?? 'none: ended at its bound'}: ${tail(ran)}`]),
    ...figures.flatMap((figure) => figureProblem(figure, ran.out) ?? []),
  ]
  const isRecorded = ran.exitCode === 0 && group.text.endsWith(' --record')
  const recorded = isRecorded ? compareWithRecord(ran.out, world.hasTraces || !OF_A_TRACE.test(group.text)) : NOTHING
  const all = [...problems, ...recorded.problems.slice(0, SHOWN_CELLS)]
  return told(all.length === 0 ? 'passed' : 'failed', all.join('\n'), ran.cpuSeconds, figures.length + recorded.cells)
}

const OF_A_TRACE = /--trace|FOLDER/
const NOTHING: Compared = { cells: 0, problems: [] }
/** Differences from a record that are shown; often it is all of them. */
const SHOWN_CELLS = 5

/** Whole experiments: the longest that is recorded took an hour. */
const FULL = { cpuSeconds: 7_200, wallSeconds: 14_400 }

async function beginShell(shell: string, place: ReturnType<DocsWorld['place']>): Promise<Ran & { hasBegun: boolean }> {
  const ran = await runShell(`ulimit -S -t ${BEGUN_CPU_S}; ${shell}`, place, BOUNDS)
  return { ...ran, hasBegun: ran.exitCode === 0 || ran.exitCode === OUT_OF_CPU }
}

/** The addresses of the pages are those of a server that we do not own: ours are on other ports. */
const localised = ({ shell, server }: Plan, { served, enginePort }: DocsWorld): string =>
  shell
    .replaceAll(/(?:localhost|127\.0\.0\.1):8080/g, `127.0.0.1:${served[server ?? 'demo'].port}`)
    .replaceAll('localhost:8000', `127.0.0.1:${enginePort}`)

/** Suites and folders of suites that a command names. */
const missingFiles = (text: string): string[] =>
  [...text.matchAll(/(?<= )(?:src|test)\/[\w./-]+/g)]
    .map(([path]) => path)
    .filter((path) => !existsSync(join(ROOT, path)))

/** npm answers a signal with an exit code of its own; the program's last word tells how it ended. */
const hasStopped = (shell: string, { out }: Ran): boolean => shell.startsWith('npm') && out.includes('"msg":"stopped"')

const tail = ({ out, err }: Ran): string => `${out}${err}`.trim().slice(-SHOWN_CHARS)
