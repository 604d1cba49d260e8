import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { eventually } from './eventually.ts'

/**
 * Spillway as a process of its own. Always ended with `end`. It is the program itself, not the launcher in `bin/`, which
 * would install what a changed lockfile asks for, in the middle of a test.
 */
export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** What Node has compiled, as the launcher keeps it: a process then starts with half of the work. */
const COMPILE_CACHE = join(ROOT, 'node_modules', '.cache', 'spillway')

export interface ChildOptions {
  readonly command?: string
  readonly args?: readonly string[]
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
  readonly uid?: number
  /** Its own process group, so that `end` reaches what it started. */
  readonly detached?: boolean
}

export class Child {
  readonly process: ChildProcess
  readonly #isLeader: boolean
  out = ''
  err = ''
  exitCode: number | undefined

  constructor(options: ChildOptions = {}) {
    const { command = process.execPath, args = [join(ROOT, 'src', 'cli', 'cli.ts'), 'serve'], cwd = ROOT } = options
    const { PATH = '', HOME = '' } = process.env
    this.#isLeader = options.detached ?? false
    this.process = spawn(command, args, {
      cwd,
      env: { PATH, HOME, PORT: '0', NO_COLOR: '1', NODE_COMPILE_CACHE: COMPILE_CACHE, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: this.#isLeader,
      ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.uid }),
    })
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.out += text
    })
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.err += text
    })
    this.process.on('close', (code, signal) => {
      this.exitCode = code ?? (signal === null ? -1 : -2)
    })
    this.process.on('error', (error) => {
      this.err += String(error)
      this.exitCode = -1
    })
  }

  /** Where it listens, once it says so. */
  address(withinMs?: number): Promise<string> {
    return eventually(
      'it listens',
      () => {
        if (this.exitCode !== undefined) throw new Error(`it ended with ${this.exitCode}: ${this.err}`)
        return /listening on (http:\/\/\S+)/.exec(this.out)?.[1]
      },
      withinMs,
    )
  }

  signal(name: NodeJS.Signals): void {
    this.process.kill(name)
  }

  async exited(withinMs?: number): Promise<number> {
    await eventually(`it ends (${this.out}${this.err})`, () => this.exitCode !== undefined, withinMs)
    return this.exitCode as number
  }

  async end(): Promise<void> {
    if (this.exitCode !== undefined) return
    const { pid } = this.process
    try {
      if (pid !== undefined) process.kill(this.#isLeader ? -pid : pid, 'SIGKILL')
    } catch {
      // It ended by itself in this very moment.
    }
    await this.exited()
  }
}

/** A folder of the test's own, with the configuration in it. */
export class TestFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'spillway-e2e-'))

  write(name: string, content: string | object): string {
    const file = join(this.path, name)
    writeFileSync(file, typeof content === 'string' ? content : stringify(content))
    return file
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true })
  }
}
