import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** One command in a shell and a process group of its own, ended at its bound. */
export interface Ran {
  /** Undefined when it was ended by us. */
  readonly exitCode: number | undefined
  readonly out: string
  readonly err: string
  readonly cpuSeconds: number
}

export interface Bounds {
  /** Processor time of the whole group. */
  readonly cpuSeconds: number
  /** For what hangs: a busy machine gives a command a tenth of a core. */
  readonly wallSeconds: number
}

export interface Place {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}

/** How often a running group is looked at. */
const LOOK_MS = 50
/** Looks between two readings of processor time, which means reading a file of every process. */
const CPU_EVERY = 30
/** Kernel ticks in a second, the unit of /proc; 100 on every Linux. */
const TICKS_PER_S = 100

/** Groups that still run: none outlives this process, also when it is told to stop. */
const running = new Set<number>()
process.on('exit', () => {
  for (const pid of running) killGroup(pid, 'SIGKILL')
})

export class Shell {
  readonly #child: ChildProcess
  readonly #folder = mkdtempSync(join(tmpdir(), 'spillway-docs-'))
  #exitCode: number | undefined
  #cpuSeconds = 0
  #isClosed = false
  out = ''
  err = ''

  constructor(command: string, { cwd, env }: Place) {
    const times = join(this.#folder, 'times')
    // With a trap the shell outlives the signal and passes on the exit code of the command.
    const script = `trap : TERM INT; exec 4>&2; TIMEFORMAT='%U %S'; { time eval "$DOC_COMMAND" 2>&4; } 2>"$DOC_TIMES"`
    const all = { ...env, DOC_COMMAND: command, DOC_TIMES: times }
    this.#child = spawn('bash', ['-c', script], { cwd, env: all, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    const { pid } = this.#child
    if (pid !== undefined) running.add(pid)
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => (this.out += text))
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.err += text))
    this.#child.on('error', (error) => (this.err += String(error)))
    this.#child.on('close', (code) => {
      this.#exitCode = code ?? undefined
      this.#isClosed = true
      if (pid !== undefined) running.delete(pid)
    })
  }

  get hasEnded(): boolean {
    return this.#isClosed
  }

  /** Until it ends by itself, or `isEnough`; ended when a bound is reached. Returns which it was. */
  async until(bounds: Bounds, isEnough: () => boolean = () => false): Promise<'ended' | 'enough' | 'bound'> {
    const deadline = performance.now() + bounds.wallSeconds * 1_000
    for (let look = 0; !this.#isClosed; look += 1) {
      if (isEnough()) return 'enough'
      if (performance.now() > deadline) return 'bound'
      if (look % CPU_EVERY === 0 && this.cpuSeconds() >= bounds.cpuSeconds) return 'bound'
      await sleep(LOOK_MS)
    }
    return 'ended'
  }

  /** So far, of the group; only Linux tells. */
  cpuSeconds(): number {
    const now = groupCpuSeconds(this.#child.pid ?? -1)
    this.#cpuSeconds = Math.max(this.#cpuSeconds, now)
    return this.#cpuSeconds
  }

  /** A server is asked to end first, by the signal of Ctrl-C or of a supervisor. */
  async end(signal: NodeJS.Signals, withinSeconds = 60): Promise<Ran> {
    this.cpuSeconds()
    if (!this.#isClosed) this.#kill(signal)
    const ended = await this.until({ cpuSeconds: Number.POSITIVE_INFINITY, wallSeconds: withinSeconds })
    if (ended !== 'ended') this.#kill('SIGKILL')
    await this.until({ cpuSeconds: Number.POSITIVE_INFINITY, wallSeconds: withinSeconds })
    return this.result(ended === 'ended')
  }

  result(hasEndedItself = true): Ran {
    const exitCode = hasEndedItself ? this.#exitCode : undefined
    const cpuSeconds = Math.max(this.#cpuSeconds, timesIn(join(this.#folder, 'times')))
    rmSync(this.#folder, { recursive: true, force: true })
    return { exitCode, out: this.out, err: this.err, cpuSeconds }
  }

  #kill(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (pid !== undefined) killGroup(pid, signal)
  }
}

function killGroup(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-pid, signal)
  } catch {
    // It ended by itself in this very moment.
  }
}

/** To its end, or killed at a bound. */
export async function runShell(command: string, place: Place, bounds: Bounds): Promise<Ran> {
  const shell = new Shell(command, place)
  const how = await shell.until(bounds)
  return how === 'ended' ? shell.result() : shell.end('SIGKILL')
}

function timesIn(path: string): number {
  try {
    const [user = 0, system = 0] = readFileSync(path, 'utf8').trim().split('\n').at(-1)!.split(' ').map(Number)
    return Number.isNaN(user + system) ? 0 : user + system
  } catch {
    return 0
  }
}

function groupCpuSeconds(group: number): number {
  let ticks = 0
  for (const pid of processIds()) {
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      // The name is in brackets and may have spaces: fields are counted behind it. 2: group; 11 to 14: times, children's too.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (Number(fields[2]) === group) ticks += fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
    } catch {
      // Gone meanwhile.
    }
  }
  return ticks / TICKS_PER_S
}

function processIds(): string[] {
  try {
    return readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  } catch {
    return []
  }
}
