import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { copyOfTree } from './copy-of-tree.ts'

/** Programs in a copy of the tree, started as a person starts them: `npm start`, and the launcher. */
export interface Program {
  readonly child: ChildProcess
  said(): string
  /** Waits until the output matches; fails with the output if the program ends first. */
  until(pattern: RegExp): Promise<RegExpExecArray>
  readonly ended: Promise<number | null>
}

export const LISTENING = /listening on (http:\/\/\S+)/
export const LAUNCHER = 'bin/spillway.mjs'

export class CopiedTree {
  readonly #folder = mkdtempSync(join(tmpdir(), 'spillway-start-'))
  readonly path = join(this.#folder, 'spillway')

  constructor() {
    beforeAll(() => copyOfTree(this.path))
    afterAll(() => rmSync(this.#folder, { recursive: true, force: true }))
  }

  start(file: string, args: readonly string[], env: Record<string, string> = {}): Program {
    // A group of its own, as a terminal gives it: nothing that we send reaches the test runner.
    const child = spawn(file, args, { cwd: this.path, env: { ...process.env, PORT: '0', ...env }, detached: true })
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

  /** Starts the launcher, and waits until it ends. */
  async fail(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
    const program = this.start(process.execPath, [LAUNCHER, ...args], env)
    const exitCode = await program.ended
    return { exitCode, said: program.said() }
  }
}

export interface Ended {
  readonly exitCode: number | null
  readonly said: string
}

/** The Node that runs this, and an older one where the machine has it. */
export function nodes(): string[] {
  return [process.execPath, ...['/usr/bin/node', '/usr/local/bin/node'].filter((path) => existsSync(path))]
}
