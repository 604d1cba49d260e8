/**
 * Starting, watching and ending the benchmark's processes.
 *
 * Everything that is started is remembered by its process id and ended by that id, never by name: other people's nginx and
 * Node processes run on the same machine.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { familyOf, TICK_SECONDS } from './process-tree.ts'

export type Role = 'proxy' | 'load'

/** The proxy has a core to itself; upstream and client share the other, so their cost never counts as the proxy's. */
const CORE: Readonly<Record<Role, string>> = { proxy: '0', load: '1' }
/** Ahead of the neighbours' builds, short of the kernel's own threads. */
const NICENESS = -18
/** 5,000 streams are 10,000 descriptors in a proxy. The soft limit is raised as far as the hard one allows. */
const RAISE_LIMIT = 'ulimit -n 65536 2>/dev/null || ulimit -n "$(ulimit -Hn)"'
/** How long a process may take to end by itself before it is killed. */
const STOP_GRACE_MS = 3_000

const children = new Set<ChildProcess>()

export interface Running {
  readonly name: string
  readonly pid: number
  readonly child: ChildProcess
  readonly stderrPath: string
}

function isNiceAllowed(): boolean {
  try {
    return execFileSync('nice', ['-n', String(NICENESS), 'nice'], { encoding: 'utf8' }).trim() === String(NICENESS)
  } catch {
    return false
  }
}

/**
 * Where the kernel groups processes by session (autogroup, on in Debian), niceness counts only inside a group, and all
 * groups weigh alike: among a dozen busy sessions ours would get a twelfth whatever it is niced to. So the group is
 * raised too. A write that is refused leaves it as it was.
 */
function raiseGroup(): void {
  try {
    writeFileSync('/proc/self/autogroup', String(NICENESS))
  } catch {
    // No such grouping here, or no right to change it.
  }
}

if (isNiceAllowed()) raiseGroup()

export const isPinned: boolean = availableParallelism() >= 2
export const isNiced: boolean = isNiceAllowed()

/** `exec` keeps the process id through shell, taskset and nice, so the id that we hold is the program's own. */
function wrapped(role: Role, command: readonly string[]): readonly string[] {
  const pin = isPinned ? ['taskset', '-c', CORE[role]] : []
  const nice = isNiced ? ['nice', '-n', String(NICENESS)] : []
  return ['sh', '-c', `${RAISE_LIMIT}; exec "$@"`, 'sh', ...pin, ...nice, ...command]
}

export function start(role: Role, name: string, command: readonly string[], dir: string): Running {
  const stderrPath = join(dir, `${name}.stderr`)
  const stderr = openSync(stderrPath, 'w')
  const [program, ...args] = wrapped(role, command) as [string, ...string[]]
  const env = { ...process.env, NODE_ENV: 'production' }
  const child = spawn(program, args, { cwd: dir, env, stdio: ['ignore', 'ignore', stderr] })
  closeSync(stderr)
  child.on('error', () => undefined) // a failed start shows as an exit, below and in waitUntilReady
  children.add(child)
  child.once('exit', () => children.delete(child))
  return { name, pid: child.pid ?? 0, child, stderrPath }
}

/** Runs a program of the load side to its end and returns what it printed. */
export async function runToEnd(command: readonly string[], dir: string): Promise<string> {
  const [program, ...args] = wrapped('load', command) as [string, ...string[]]
  const child = spawn(program, args, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] })
  children.add(child)
  let out = ''
  let err = ''
  child.stdout.on('data', (bytes: Buffer) => {
    out += bytes.toString()
  })
  child.stderr.on('data', (bytes: Buffer) => {
    err += bytes.toString()
  })
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  children.delete(child)
  if (code !== 0) throw new Error(`${command[0]} ended with ${code}: ${err.trim()}`)
  return out
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const family = familyOf(child.pid)
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  child.kill('SIGTERM')
  await Promise.race([ended, sleep(STOP_GRACE_MS, undefined, { ref: false })])
  if (child.exitCode !== null || child.signalCode !== null) return
  for (const pid of family) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended on its own in the meantime.
    }
  }
}

export async function stopAll(): Promise<void> {
  await Promise.all([...children].map(stop))
}

/** How many descriptors a process started here may hold. */
export function descriptorsLimit(): number {
  return Number(execFileSync('sh', ['-c', `${RAISE_LIMIT}; ulimit -n`], { encoding: 'utf8' }))
}

/** CPU time that the host gave to other virtual machines, over all cores, since boot. */
export function stolenSeconds(): number {
  const fields = readFileSync('/proc/stat', 'utf8').split('\n')[0]?.split(/\s+/) ?? []
  return Number(fields[8] ?? 0) * TICK_SECONDS
}
