/** What must be on the machine, what is compiled, and what is fetched for the benchmark alone. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'

const HERE = import.meta.dirname
const PORTKEY_DIR = join(HERE, 'portkey')
const PORTKEY_PACKAGE = join(PORTKEY_DIR, 'node_modules/@portkey-ai/gateway')
export const PORTKEY_START: string = join(PORTKEY_PACKAGE, 'build/start-server.js')

/** What a program prints; throws with its complaint when it fails. */
export function outputOf([program, ...args]: readonly [string, ...string[]]): string {
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
}

export function isOnPath(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0
}

/** Everything that stops a run, each with what to do about it. */
export function missingTools(): string[] {
  const missing: string[] = []
  if (process.platform !== 'linux') missing.push('Linux is needed: process times come from /proc')
  if (!isOnPath('cc'))
    missing.push('no C compiler: the upstream and the load client are C (Debian: apt-get install gcc libc6-dev)')
  for (const program of ['taskset', 'nice'])
    if (!isOnPath(program)) missing.push(`${program} is not installed (Debian: apt-get install util-linux coreutils)`)
  return missing
}

export interface Programs {
  readonly upstream: string
  readonly client: string
}

/** Compiled anew into the run's folder: half a second, and never out of date. */
export function compilePrograms(dir: string): Programs {
  const compile = (name: string): string => {
    const path = join(dir, name)
    outputOf(['cc', '-O2', '-o', path, join(HERE, `${name}.c`)])
    return path
  }
  return { upstream: compile('fake-upstream'), client: compile('load-client') }
}

const readVersion = (path: string): string => String(JSON.parse(readFileSync(path, 'utf8')).version)

export function portkeyVersion(): string {
  return readVersion(join(PORTKEY_PACKAGE, 'package.json'))
}

/** From its own lockfile into its own folder; its install scripts do not run (see the .npmrc there). */
export function installPortkey(): void {
  const wanted = JSON.parse(readFileSync(join(PORTKEY_DIR, 'package.json'), 'utf8')).dependencies['@portkey-ai/gateway']
  if (existsSync(PORTKEY_START) && portkeyVersion() === wanted) return
  console.error('installing Portkey into the benchmark folder (once) …')
  const done = spawnSync('npm', ['ci', '--loglevel=error'], {
    cwd: PORTKEY_DIR,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  if (done.status !== 0)
    throw new Error('npm ci in bench/load/gateway-overhead/portkey failed (is the registry in reach?)')
}

/** Below the range that the kernel hands out to clients (from 32768), so that no outgoing connection can sit on it. */
const PORT_FIRST = 21_000
const PORT_LAST = 31_000
let nextPort = PORT_FIRST + (process.pid % 5_000)

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}

export async function takeFreePort(): Promise<number> {
  while (nextPort < PORT_LAST) {
    const port = nextPort++
    if (await isFree(port)) return port
  }
  throw new Error(`no free port between ${PORT_FIRST} and ${PORT_LAST}`)
}
