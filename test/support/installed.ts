import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Programs that some suites need and that npm does not bring. Where one is missing, the suites that need it say so and
 * are skipped; in CI (`CI` is set, as `.ci/run` does) a missing program is a failure, and `.ci/run` installs them all.
 */
const PROGRAMS = {
  chromium: { path: () => firstThere('chromium', 'chromium-browser', 'google-chrome'), how: 'Debian: chromium' },
  curl: { path: () => firstThere('curl'), how: 'Debian: curl' },
  ip: { path: () => firstThere('ip'), how: 'Debian: iproute2' },
  // Debian 12's is too old for components, so CI goes without where the machine has none.
  kubectl: { path: () => firstThere('kubectl'), how: 'kubectl 1.27 or later', isOffered: false },
  'llama.cpp': { path: llamaEntry, how: 'see docs/recipes/connect-engines.md', isOffered: hasLlamaBuild() },
  locust: { path: () => firstThere('locust'), how: 'Debian: python3-locust' },
  openssl: { path: () => firstThere('openssl'), how: 'Debian: openssl' },
  postgresql: { path: postgresWithPgvector, how: 'with pgvector: see .ci/run' },
  prometheus: { path: () => firstThere('prometheus'), how: 'Debian: prometheus' },
  promtool: { path: () => firstThere('promtool'), how: 'Debian: prometheus' },
  redis: { path: () => firstThere('redis-server'), how: 'Debian: redis-server' },
}

type Program = keyof typeof PROGRAMS

/** Where to look for a program, and how to get it. */
interface Wanted {
  readonly path: () => string | undefined
  readonly how: string
  /** False where nobody offers it for this machine: then CI goes without. */
  readonly isOffered?: boolean
}

/** Undefined when all of them are installed; else why the suite is skipped. Throws instead in CI. */
export function missing(...programs: readonly Program[]): string | undefined {
  const absent = programs.filter((program) => wanted(program).path() === undefined)
  if (absent.length === 0) return undefined
  const why = absent.map((program) => `${program} is not installed (${PROGRAMS[program].how})`).join('; ')
  if (process.env['CI'] && absent.some((program) => wanted(program).isOffered !== false))
    throw new Error(`CI must have what its suites need: ${why}`)
  return why
}

const wanted = (program: Program): Wanted => PROGRAMS[program]

/** Where it is. Only for suites that asked `missing` first. */
export function pathOf(program: Program): string {
  const path = PROGRAMS[program].path()
  if (path === undefined) throw new Error(`${program} is not installed (${PROGRAMS[program].how})`)
  return path
}

function firstThere(...names: readonly string[]): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(':')
  // A user's PATH may leave out where Debian keeps what only root needs.
  const paths = names.flatMap((name) => [...folders, '/usr/sbin', '/sbin'].map((folder) => join(folder, name)))
  return paths.find((path) => existsSync(path))
}

/** The folder of its programs. Debian keeps several versions side by side: the newest that has pgvector. */
function postgresWithPgvector(): string | undefined {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root) ? readdirSync(root).sort((a, b) => Number(b) - Number(a)) : []
  const initdb = firstThere('initdb')
  const bins = [...versions.map((version) => join(root, version, 'bin')), ...(initdb ? [join(initdb, '..')] : [])]
  return bins.find((bin) => existsSync(join(bin, 'initdb')) && hasPgvector(bin))
}

function hasPgvector(bin: string): boolean {
  const shared = spawnSync(join(bin, 'pg_config'), ['--sharedir'], { encoding: 'utf8' }).stdout?.trim()
  const version = bin.split('/').at(-2) ?? ''
  const folders = [shared, `/usr/share/postgresql/${version}`].filter(Boolean)
  return folders.some((folder) => existsSync(join(folder as string, 'extension/vector.control')))
}

function hasLlamaBuild(): boolean {
  return process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch)
}

/** `.ci/run` installs it in a folder of its own, for it is no dependency of ours. */
function llamaEntry(): string | undefined {
  const folder = process.env['NODE_LLAMA_CPP_FOLDER'] ?? join(import.meta.dirname, '..', '..')
  const entry = join(folder, 'node_modules', 'node-llama-cpp', 'dist', 'index.js')
  return existsSync(entry) ? entry : undefined
}
