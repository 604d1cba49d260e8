import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { copyOfTree } from '../support/copy-of-tree.ts'

/** The program as a person starts it: `npm start` in a copy of the tree, and the launcher with flags. */

const folder = mkdtempSync(join(tmpdir(), 'spillway-start-'))
const copy = join(folder, 'spillway')

beforeAll(() => copyOfTree(copy))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

interface Program {
  readonly child: ChildProcess
  said(): string
  /** Waits until the output matches; fails with the output if the program ends first. */
  until(pattern: RegExp): Promise<RegExpExecArray>
  readonly ended: Promise<number | null>
}

function start(file: string, args: readonly string[], env: Record<string, string> = {}): Program {
  // A group of its own, as a terminal gives it: nothing that we send reaches the test runner.
  const child = spawn(file, args, { cwd: copy, env: { ...process.env, PORT: '0', ...env }, detached: true })
  let text = ''
  const wake = new Set<() => void>()
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (bytes) => {
      text += bytes
      for (const fn of wake) fn()
    })
  }
  const ended = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)))
  const until = (pattern: RegExp) =>
    new Promise<RegExpExecArray>((resolve, reject) => {
      const look = () => {
        const found = pattern.exec(text)
        if (found !== null) resolve(found)
      }
      wake.add(look)
      look()
      void ended.then(() => reject(new Error(`it ended, having said:\n${text}`)))
    })
  return { child, said: () => text, until, ended }
}

const LISTENING = /listening on (http:\/\/\S+)/
const bin = ['bin/spillway.mjs']

describe('npm start', () => {
  let program: Program
  let address: string
  // Before the test: on a busy machine it takes longer than the test.
  beforeEach(async () => {
    program = start('npm', ['start'])
    address = (await program.until(LISTENING))[1] ?? ''
  })

  it('serves, and ends when npm is told to end', async () => {
    expect((await fetch(`${address}/health`)).status).toBe(200)
    expect(program.said()).toContain('sk-demo-acme')
    program.child.kill('SIGTERM')
    await program.ended
    await expect(fetch(`${address}/health`)).rejects.toThrow('fetch failed')
  })

  it('ends once on Ctrl-C, which reaches every process of the group', async () => {
    process.kill(-(program.child.pid as number), 'SIGINT')
    await program.ended
    await expect(fetch(`${address}/health`)).rejects.toThrow('fetch failed')
  })
})

describe('the launcher', () => {
  it.each(nodes())('goes on under the pinned Node, started by %s', async (node) => {
    const program = start(node, [...bin, '--version', '--json'])
    expect(await program.ended).toBe(0)
    expect(JSON.parse(program.said()).node).toBe(process.versions.node)
  })

  it.each(nodes())('hands signals and the exit code on, started by %s', async (node) => {
    const program = start(node, [...bin, 'serve'])
    await program.until(LISTENING)
    program.child.kill('SIGTERM')
    expect(await program.ended).toBe(0)
  })
})

describe('what goes wrong is one line', () => {
  async function fail(args: readonly string[], env: Record<string, string> = {}) {
    const program = start(process.execPath, [...bin, ...args], env)
    const exitCode = await program.ended
    return { exitCode, said: program.said() }
  }

  it('a port in use', async () => {
    const busy = createServer()
    await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve))
    const { port } = busy.address() as { port: number }
    expect(await fail(['serve'], { PORT: String(port) })).toEqual({
      exitCode: 1,
      said: `spillway: port ${port} on 127.0.0.1 is in use. Stop what listens there, or choose another port with --port or PORT.\n`,
    })
    busy.close()
  })

  it('a broken file', async () => {
    writeFileSync(join(copy, 'bad.yaml'), 'server:\n  prot: 1\ntenants: [{ id: a }]\n')
    expect(await fail(['serve', '--config', 'bad.yaml'])).toEqual({
      exitCode: 1,
      said: 'spillway: bad.yaml:2: server.prot is not a setting. Did you mean "port"?\n',
    })
  })

  it('demo keys on an open address', async () => {
    const { exitCode, said } = await fail(['serve'], { HOST: '0.0.0.0' })
    expect(exitCode).toBe(1)
    expect(said).toMatch(/^spillway: will not listen on 0\.0\.0\.0 with the demo keys[^\n]*\n$/)
  })
})

/** The Node that runs this, and an older one where the machine has it. */
function nodes(): string[] {
  return [process.execPath, ...['/usr/bin/node', '/usr/local/bin/node'].filter((path) => existsSync(path))]
}
