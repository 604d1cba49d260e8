import { existsSync, globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { commands } from '../src/cli/commands.ts'
import { commandsOf } from './docs-check/doc-commands.ts'

/** The page of requirements names what is there: files, tests, commands, scenarios, variables and metrics. `npm run docs:check` runs the commands. */
const ROOT = new URL('../', import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, ROOT), 'utf8')
const STATES = ['there', 'corrected', 'partly', 'missing', 'paper']
const HEAD = '| asked for | state | lives in | test | shown by | seen |'

interface World {
  readonly has: (path: string) => boolean
  readonly commands: readonly string[]
  readonly scripts: readonly string[]
  readonly names: string
}

const quoted = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1]!)

function rowsOf(page: string): string[][] {
  const rows: string[][] = []
  let isIn = false
  for (const line of page.split('\n')) {
    if (line === HEAD) isIn = true
    else if (!line.startsWith('|')) isIn = false
    else if (isIn && !line.startsWith('|---'))
      rows.push(
        line
          .split('|')
          .slice(1, -1)
          .map((cell) => cell.trim()),
      )
  }
  return rows
}

function commandProblem(command: string, world: World): string | undefined {
  const words = command.replace(/^(?:[A-Z_]+=\S+ )+/, '').split(' ')
  const [program, first = '', second = ''] = words
  if (program === 'node') return world.has(first) ? undefined : `no file ${first}`
  if (program === 'locust') return world.has(words[2] ?? '') ? undefined : `no file ${words[2]}`
  if (program === 'curl') return /localhost:8080\/[a-z]/.test(command) ? undefined : 'asks for no route'
  if (program === 'npm') return first === 'start' || world.scripts.includes(second) ? undefined : `no script ${second}`
  if (program === 'docker') return first === 'compose' && world.has('compose.yaml') ? undefined : 'runs no compose file'
  if (program !== 'npx' || first !== 'spillway') return `${program} is no program of ours`
  const name = words.slice(2, 4).join(' ')
  if (!world.commands.some((known) => name === known || name.split(' ')[0] === known)) return `no command ${name}`
  const isScenario = second === 'simulate' || second === 'bench'
  return isScenario && !world.has(`scenarios/${words[3]}.yaml`) ? `no scenario ${words[3]}` : undefined
}

function rowProblems(row: readonly string[], world: World): string[] {
  const [asked = '', state = '', lives = '', test = '', shown = '', seen = ''] = row
  const problems = (what: string[]): string[] => what.map((one) => `${asked}: ${one}`)
  if (row.length !== 6) return problems([`${row.length} cells`])
  return problems([
    ...(STATES.includes(state) ? [] : [`no such state: ${state}`]),
    ...(quoted(lives).length === 0 ? ['lives nowhere'] : []),
    ...quoted(lives)
      .filter((path) => !world.has(path))
      .map((path) => `no file ${path}`),
    ...(quoted(test).length === 1 ? [] : ['needs one test']),
    ...quoted(test)
      .filter((path) => !path.endsWith('.test.ts') || !world.has(path))
      .map((path) => `no test ${path}`),
    ...(quoted(shown).length === 1 && commandsOf('', shown).length === 1 ? [] : ['needs one command']),
    ...commandsOf('', shown).flatMap(({ text }) => commandProblem(text, world) ?? []),
    ...quoted(`${asked} ${seen}`)
      .filter((name) => /^(spillway_\w+|[A-Z]+(_[A-Z]+)+)$/.test(name) && !world.names.includes(name))
      .map((name) => `no name ${name}`),
    ...(['partly', 'missing'].includes(state) && seen === '' ? ['says not what is missing'] : []),
  ])
}

const PROJECT: World = {
  has: (path) => existsSync(new URL(path, ROOT)),
  commands: commands.map(({ name }) => name),
  scripts: Object.keys((JSON.parse(read('package.json')) as { scripts: object }).scripts),
  names: `${read('docs/operations/metrics.md')}${read('.env.example')}`,
}

describe('the page of requirements', () => {
  const rows = rowsOf(read('docs/architecture/traceability.md'))

  it('has a row for each of them', () => expect(rows.length).toBeGreaterThan(150))

  it('names files, tests, commands, scenarios, variables and metrics that are there', () => {
    expect(rows.flatMap((row) => rowProblems(row, PROJECT))).toEqual([])
  })

  it('mentions every shipped experiment or scenario that a reader would look for', () => {
    const page = read('docs/architecture/traceability.md')
    const shown = globSync('scenarios/*.yaml', { cwd: ROOT }).filter((path) => page.includes(` ${path.slice(10, -5)}`))
    expect(shown.length).toBeGreaterThan(15)
  })

  const good = ['a', 'there', '`src/cli/cli.ts`', '`test/tidy.test.ts`', '`npx spillway simulate burst`', '1']
  it.each([
    [3, '`test/none.test.ts`', 'no test test/none.test.ts'],
    [2, '`src/none.ts`', 'no file src/none.ts'],
    [1, 'done', 'no such state: done'],
    [4, '`npx spillway simulate none`', 'no scenario none'],
    [4, '`npx spillway conjure`', 'no command conjure'],
    [4, '`node bench/none.ts`', 'no file bench/none.ts'],
    [4, '`npm run none`', 'no script none'],
    [5, '`spillway_none_total`', 'no name spillway_none_total'],
    [0, '`NO_SUCH_NAME`', 'no name NO_SUCH_NAME'],
  ])('is found wrong when cell %i is %s', (at, cell, says) => {
    expect(rowProblems(good, PROJECT)).toEqual([])
    expect(rowProblems(good.with(at, cell), PROJECT).join()).toContain(says)
  })
})
