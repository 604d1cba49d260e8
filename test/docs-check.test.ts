import { tmpdir } from 'node:os'
import { describe, expect, it } from 'vitest'
import { commandsOf } from './docs-check/doc-commands.ts'
import { figureProblem, figuresOf, unreadFigures } from './docs-check/figures.ts'
import { planOf, type Served } from './docs-check/plans.ts'
import { compareTables } from './docs-check/recorded-tables.ts'
import { runShell } from './docs-check/run-shell.ts'

/** The parts of `npm run docs:check`; the whole of it is `docs-check.long.test.ts`. */
const textsOf = (page: string) => commandsOf('p.md', page).map(({ text }) => text)

describe('commands of a page', () => {
  it('are the lines of blocks of a shell, put together and without comments', () => {
    const page =
      '```sh\nnpx spillway serve   # in one terminal\n\n$ curl x \\\n  -d "#1"\ncurl y -d \'{\n  "a": 1\n}\'\n```'
    expect(commandsOf('p.md', page).map(({ line, text }) => [line, text])).toEqual([
      [2, 'npx spillway serve'],
      [4, 'curl x \\\n  -d "#1"'],
      [6, 'curl y -d \'{\n  "a": 1\n}\''],
    ])
  })

  it('are in text what begins with a program', () => {
    expect(textsOf('`npx spillway top`, `spillway top`, `src/cli/cli.ts`, `A=1 node bench/x.ts --seeds 2`')).toEqual([
      'npx spillway top',
      'A=1 node bench/x.ts --seeds 2',
    ])
    expect(textsOf('```yaml\nnpx spillway top\n```\n```\nnpx spillway me\n{"a": 1}\n```')).toEqual(['npx spillway me'])
  })

  it('have the reason why they are not run', () => {
    const page =
      '| `npm start` <!-- not run: needs a GPU --> | `npm test` |\n<!-- not run: yours -->\n```sh\nnode app.mjs\n```\n```sh\nnode b.mjs\n```'
    expect(commandsOf('p.md', page).map(({ text, mark }) => [text, mark])).toEqual([
      ['npm start', 'needs a GPU'],
      ['npm test', undefined],
      ['node app.mjs', 'yours'],
      ['node b.mjs', undefined],
    ])
  })
})

describe('figures of a page', () => {
  const figureOf = (text: string) => {
    const page = `\`npx spillway simulate burst\`: ${text}`
    return figuresOf('p.md', page, commandsOf('p.md', page))[0]!
  }
  const output = JSON.stringify({ shed: 30, arrived: 1_000, engine: { busy: 0.84 } })

  it.each([
    ['1,000 requests <!-- figure: arrived ±0 -->', undefined],
    ['1,010 <!-- figure: arrived ±1 % -->', undefined],
    ['1,020 <!-- figure: arrived ±1 % -->', 'the page says 1020, arrived is 1000 (±1 %)'],
    ['of 7 in all 2.8 % <!-- figure: shed / arrived × 100 ±0.3 -->', undefined],
    ['2.6 % <!-- figure: shed / arrived × 100 ±0.3 -->', 'shed / arrived is 3'],
    ['0.9 <!-- figure: engine.busy ±0.02 -->', 'is 0.84'],
    ['1 <!-- figure: engine.kv ±0.02 -->', 'engine.kv is not in the output'],
  ])('%s', (text, problem) => {
    const found = figureProblem(figureOf(text), output)
    if (problem === undefined) expect(found).toBeUndefined()
    else expect(found).toContain(problem)
  })

  it('are found in text, and counted', () => {
    const text = 'name 16: 1,281 a second\n# TYPE a\n# TYPE b\n'
    expect(figureProblem(figureOf('1,281 <!-- figure: /16: ([\\d,]+)/ ±0 -->'), text)).toBeUndefined()
    expect(figureProblem(figureOf('3 <!-- figure: count /^# TYPE / ±0 -->'), text)).toContain('is 2')
  })

  it('belong to the last command before them, or to the one that they name', () => {
    expect(figureOf('1 <!-- figure: x ±0 -->').command).toBe('npx spillway simulate burst')
    expect(figureOf('1 <!-- figure: x ±0 of npx spillway plan -->').command).toBe('npx spillway plan')
    expect(() => figuresOf('p.md', 'no number <!-- figure: x ±0 -->', [])).toThrow('p.md:1')
    expect(unreadFigures('1 <!-- figure: x -->, 2 <!-- figure: x ±1 -->')).toEqual(['<!-- figure: x -->'])
  })
})

describe('a recorded table', () => {
  const table = (cell: number | string) => ({ title: 't', columns: ['name', 'x'], rows: [['a', cell]] })
  const compared = (now: number | string) =>
    compareTables({ name: 'e', tables: [table(100)] }, { tables: [table(now)] })

  it('holds for a run within its tolerance', () => {
    expect(compared(104)).toEqual({ cells: 1, problems: [] })
    expect(compared(106).problems).toEqual(['e: t: a, x: recorded 100, now 106'])
    expect(compared('–').problems).toHaveLength(1)
  })
})

describe('a command', () => {
  const served: Served = {
    demo: { port: 1, requestId: 'req_1' },
    file: { port: 2, config: 'c.yaml', poolId: 'p' },
  }
  const shellOf = (text: string, isFull = false) => planOf({ text }, served, isFull).shell

  it('gets what its reader fills in', () => {
    expect(shellOf('npx spillway explain REQUEST_ID')).toBe('npx spillway explain req_1')
    expect(shellOf('npx spillway engine learned POOL')).toBe('npx spillway engine learned p')
    expect(shellOf('curl localhost:8080/metrics')).toContain("-H 'authorization: Bearer sk-demo-admin'")
  })

  it('never asks another host', () => {
    expect(shellOf('npx spillway models add m --release 2 --replica http://gpu-4:8000/v1')).toContain(
      'http://127.0.0.1:1/v1',
    )
    expect(shellOf('npx spillway bench x --url https://staging.example')).toContain('--url http://127.0.0.1:2')
  })

  it('is shortened unless the whole is asked for', () => {
    expect(planOf({ text: 'npx spillway simulate saturated' }, served, false)).toMatchObject({
      way: 'ends',
      isShort: true,
    })
    expect(planOf({ text: 'npx spillway simulate saturated' }, served, true)).toMatchObject({
      way: 'ends',
      isShort: false,
    })
    expect(planOf({ text: 'node bench/experiments/cells.ts --seeds 1 --record' }, served, false)).toMatchObject({
      way: 'begins',
    })
    expect(shellOf('node bench/experiments/cells.ts --seeds 1 --record', true)).not.toContain('--record')
    expect(planOf({ text: 'npx spillway serve' }, served, false)).toMatchObject({ way: 'serves' })
  })

  it('is ended with all that it started when it reaches its bound', async () => {
    const place = { cwd: tmpdir(), env: { PATH: process.env['PATH'] ?? '' } }
    const ran = await runShell('sleep 600 & wait', place, { cpuSeconds: 5, wallSeconds: 0.5 })
    // Whatever still ran would hold the pipe, and the run would not have ended.
    expect(ran.exitCode).toBeUndefined()
    expect(await runShell('exit 3', place, { cpuSeconds: 5, wallSeconds: 60 })).toMatchObject({ exitCode: 3 })
  })
})
