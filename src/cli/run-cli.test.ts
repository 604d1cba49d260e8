import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { hashKey } from '../config/key-hash.ts'
import { commands } from './commands.ts'
import { runCli } from './run-cli.ts'

async function run(...words: string[]) {
  const out: string[] = []
  const err: string[] = []
  const exitCode = await runCli(words, { out: (text) => out.push(text), err: (text) => err.push(text) })
  return { exitCode, out: out.join('\n'), err }
}

describe('help', () => {
  it('lists every command', async () => {
    const { exitCode, out } = await run('--help')
    expect(exitCode).toBe(0)
    const width = Math.max(...commands.map(({ name }) => name.length))
    for (const { name, summary } of commands) expect(out).toContain(`${name.padEnd(width)}  ${summary}`)
  })
  it.each(commands.map((command) => [command.name, command] as const))(
    'of %s tells every flag',
    async (name, command) => {
      const { exitCode, out } = await run(...name.split(' '), '--help')
      expect(exitCode).toBe(0)
      for (const flag of Object.keys(command.flags)) expect(out).toContain(`--${flag}`)
      expect(await run('help', ...name.split(' '))).toEqual({ exitCode, out, err: [] })
    },
  )
  it.each(['config', 'corpus', 'models', 'replicas', 'rollout', 'keys', 'engine'])(
    'of the group %s tells its commands',
    async (word) => {
      const { exitCode, out, err } = await run(word, '--help')
      expect({ exitCode, err }).toEqual({ exitCode: 0, err: [] })
      const group = commands.filter(({ name }) => name.startsWith(`${word} `))
      expect(group.length).toBeGreaterThan(0)
      for (const { name, summary } of group) {
        expect(out).toMatch(new RegExp(`^  ${name} +\\S`, 'm'))
        expect(out).toContain(summary)
      }
      expect(await run('help', word)).toEqual({ exitCode, out, err })
      expect(await run(word, '-h')).toEqual({ exitCode, out, err })
    },
  )
  it('fits a terminal', async () => {
    for (const { name } of commands) {
      const { out } = await run(...name.split(' '), '--help')
      for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(120)
    }
  })
  it('is what a bare call gets, as a mistake', async () => expect((await run()).exitCode).toBe(2))
})

describe('version', () => {
  it('is for people or for machines', async () => {
    expect((await run('--version')).out).toMatch(/^spillway \d+\.\d+\.\d+ \(Node \d+/)
    expect(JSON.parse((await run('-v', '--json')).out)).toEqual({
      version: expect.any(String),
      node: process.versions.node,
    })
  })
})

describe('config check', () => {
  it('tells the new name of a setting that is under its old one, and is content', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'spillway-cli-'))
    const path = join(folder, 's.yaml')
    writeFileSync(path, 'tenants: [{ id: a }]\nretrieval: { dataPath: there }\n')
    const warning = `${path}:2: retrieval.dataPath is called store.path now.`
    const { exitCode, err } = await run('config', 'check', '--config', path)
    const { out } = await run('config', 'check', '--config', path, '--json')
    rmSync(folder, { recursive: true })
    expect({ exitCode, err }).toEqual({ exitCode: 0, err: [`spillway: ${warning}`] })
    expect(JSON.parse(out)).toMatchObject({ ok: true, warnings: [warning] })
  })
})

describe('a typing mistake is one line and exit code 2', () => {
  it.each([
    [['serv'], 'spillway: "serv" is not a command. Did you mean "spillway serve"?'],
    [['config', 'chek'], 'spillway: "config chek" is not a command. Did you mean "spillway config check"?'],
    [['config'], 'spillway: "config" needs one more word. Try: spillway config check, spillway config print.'],
    [['frobnicate'], 'spillway: "frobnicate" is not a command. See: spillway --help'],
    [['--port', '1'], 'spillway: "1" is not a command. See: spillway --help'],
    [['serve', '--prot', '1'], 'spillway: --prot is not a flag of "serve". Did you mean --port?'],
    [['serve', 'now'], 'spillway: "now" is one word too many for "serve". See: spillway serve --help'],
    [['keys', 'create'], 'spillway: --tenant is missing. Try: spillway keys create --tenant acme'],
    [['keys', 'create', '--tenant', 'a b'], 'spillway: --tenant is "a b". Use letters, digits and . _ : / - only.'],
    [['engine', '--fail-rate', '2'], 'spillway: --fail-rate is "2". Give a number from 0 to 1.'],
    [['engine', '--max-seqs', '1.5'], 'spillway: --max-seqs is "1.5". Give a whole number from 1 to 1000000000.'],
  ])('%j', async (words, line) => expect(await run(...words)).toEqual({ exitCode: 2, out: '', err: [line] }))

  it('when a value is missing', async () => {
    const { exitCode, err } = await run('serve', '--port')
    expect(exitCode).toBe(2)
    expect(err).toHaveLength(1)
    expect(err[0]).toMatch(/^spillway: .*--port.*See: spillway serve --help$/)
  })
})

describe('keys create', () => {
  it('makes a secret whose hash it tells', async () => {
    const key = JSON.parse((await run('keys', 'create', '--tenant', 'acme', '--json')).out)
    expect(key.secret).toMatch(/^sk-sw-[\w-]{43}$/)
    expect(key).toMatchObject({ tenant: 'acme', hash: hashKey(key.secret), id: expect.stringMatching(/^acme-\w{8}$/) })
  })
  it('never makes the same twice, and prints YAML to paste', async () => {
    const first = await run('keys', 'create', '--tenant', 'acme', '--id', 'web')
    const second = await run('keys', 'create', '--tenant', 'acme', '--id', 'web')
    expect(first.out).not.toBe(second.out)
    expect(first.out).toMatch(/- id: acme\n {6}keys:\n {8}- id: web\n {10}hash: sha256:[0-9a-f]{64}$/)
  })
})

describe('config', () => {
  it('check says where a file is wrong', async () => {
    expect(await run('config', 'check', '--config', 'no/such.yaml')).toEqual({
      exitCode: 1,
      out: '',
      err: ['spillway: no/such.yaml: There is no such file. Check the path given with --config or SPILLWAY_CONFIG.'],
    })
    const { exitCode, out } = await run('config', 'check', '--config', 'no/such.yaml', '--json')
    expect(exitCode).toBe(1)
    expect(JSON.parse(out)).toMatchObject({ ok: false, problems: [expect.stringContaining('no/such.yaml')] })
  })
  it('print shows everything in the schema\u2019s order', async () => {
    const { out } = await run('config', 'print', '--json')
    expect(Object.keys(JSON.parse(out)).slice(0, 3)).toEqual(['server', 'seed', 'models'])
  })
})
