import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { chownSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from './eventually.ts'
import { pathOf } from './installed.ts'
import { letterVector } from './scripted-retrieval.ts'

/**
 * Real servers for a test run, on free ports and in folders of their own: PostgreSQL with pgvector, and Redis. Suites
 * that need one ask `missing` first.
 */
export interface TestServer {
  readonly url: string
  /** Stops it in its tracks, as a hanging disk would; `resume` lets it go on. */
  pause(): void
  resume(): void
  close(): Promise<void>
}

export async function startPostgres(): Promise<TestServer> {
  const bin = pathOf('postgresql')
  const folder = mkdtempSync(join(tmpdir(), 'spillway-pg-'))
  // PostgreSQL will not run as root.
  const who = process.getuid?.() === 0 ? idOf('postgres') : undefined
  if (who !== undefined) chownSync(folder, who.uid, who.gid)
  const data = join(folder, 'data')
  emptyCluster ??= makeEmptyCluster(bin, who)
  const copied = spawnSync('cp', ['-a', emptyCluster, data])
  if (copied.status !== 0) throw new Error(`no copy of an empty cluster: ${String(copied.stderr)}`)
  const port = await freePort()
  const settings = [
    'fsync=off',
    'full_page_writes=off',
    `unix_socket_directories=${folder}`,
    'max_connections=50',
    'lc_messages=C',
  ]
  const args = ['-D', data, '-p', String(port), '-h', '127.0.0.1', ...settings.flatMap((setting) => ['-c', setting])]
  const child = spawn(join(bin, 'postgres'), args, { ...who, stdio: ['ignore', 'ignore', 'pipe'] })
  const url = `postgres://test@127.0.0.1:${port}/postgres`
  await told(child, 'ready to accept connections')
  return serverOf(child, url, folder, true)
}

/** The server's log has this line, or it ended without it. What it writes later is read and dropped. */
function told(child: ChildProcess, line: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let log = ''
    const read = (text: Buffer): void => {
      log += text.toString()
      if (!log.includes(line)) return
      child.stderr?.off('data', read).resume()
      resolve()
    }
    child.stderr?.on('data', read)
    child.once('exit', () => reject(new Error(`the server did not start: ${log}`)))
  })
}

/** Made once for each process of tests, and copied for each server: `initdb` takes a core for seconds. */
let emptyCluster: string | undefined

function makeEmptyCluster(bin: string, who: { uid: number; gid: number } | undefined): string {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-pg-empty-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  if (who !== undefined) chownSync(folder, who.uid, who.gid)
  const data = join(folder, 'data')
  const words = ['-D', data, '-U', 'test', '-A', 'trust', '--no-sync', '-E', 'UTF8']
  const made = spawnSync(join(bin, 'initdb'), words, { ...who })
  if (made.status !== 0) throw new Error(`initdb failed: ${String(made.stderr)}`)
  return data
}

export async function startRedis(more: RedisOptions = {}): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-redis-'))
  const port = more.port ?? (await freePort())
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no']
  const words = [...(more.file === undefined ? [] : [more.file]), ...args, ...(more.args ?? [])]
  const child = spawn(pathOf('redis'), words, { stdio: 'ignore' })
  const cli = [...(more.cli ?? ['-p', String(port)]), '-h', '127.0.0.1']
  await eventually(
    'Redis answers',
    () => /PONG|NOAUTH/.test(spawnSync('redis-cli', [...cli, 'ping'], { encoding: 'utf8' }).stdout) || undefined,
    30_000,
  )
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  return {
    ...serverOf(child, `redis://127.0.0.1:${port}`, folder, false),
    port,
    async kill() {
      child.kill('SIGKILL')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

export interface RedisOptions {
  readonly port?: number
  /** A configuration file, which sentinels need. */
  readonly file?: string
  /** Further words for `redis-server`. */
  readonly args?: readonly string[]
  /** How `redis-cli` reaches it, if not by its port alone. */
  readonly cli?: readonly string[]
}

export interface RedisServer extends TestServer {
  readonly port: number
  /** Ends it at once, as a crash would, with everything that it kept. Instead of `close`. */
  kill(): Promise<void>
}

function serverOf(child: ChildProcess, url: string, folder: string, hasChildren: boolean): TestServer {
  const pid = child.pid as number
  const family = (): number[] => (hasChildren ? [pid, ...childrenOf(pid)] : [pid])
  const signal = (name: NodeJS.Signals): void => {
    for (const one of family()) {
      try {
        process.kill(one, name)
      } catch {
        // It ended by itself meanwhile.
      }
    }
  }
  return {
    url,
    pause: () => signal('SIGSTOP'),
    resume: () => signal('SIGCONT'),
    async close() {
      signal('SIGCONT')
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGINT')
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function childrenOf(pid: number): number[] {
  const listed = spawnSync('ps', ['-o', 'pid=', '--ppid', String(pid)], { encoding: 'utf8' }).stdout
  return listed.split('\n').map(Number).filter(Boolean)
}

function idOf(user: string): { uid: number; gid: number } {
  const read = (flag: string): number => Number(spawnSync('id', [flag, user], { encoding: 'utf8' }).stdout)
  return { uid: read('-u'), gid: read('-g') }
}

/**
 * Ports below those that a system gives to outgoing connections (from 32,768 on Linux, from 49,152 elsewhere). Of those,
 * one that was free a moment ago may belong to any call of any test before its server has started.
 */
const PORT_MIN = 20_000
const PORT_MAX = 32_000
/** Each thread goes its own way through them. */
let nextPort = randomInt(PORT_MIN, PORT_MAX)

export async function freePort(portMax = PORT_MAX): Promise<number> {
  for (let tried = 0; tried < PORT_MAX - PORT_MIN; tried++) {
    nextPort = nextPort < portMax ? nextPort + 1 : PORT_MIN
    const port = nextPort
    if (await isFree(port)) return port
  }
  throw new Error(`no port from ${PORT_MIN} to ${portMax} is free`)
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** OpenAI's `/v1/embeddings` with letters for meaning: as fast as the machine, whatever else runs on it. */
export async function startEmbedder(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createHttpServer((req, res) => {
    let text = ''
    req.on('data', (part: Buffer) => {
      text += part.toString()
    })
    req.on('end', () => {
      const { input } = JSON.parse(text) as { input: string[] }
      const data = input.map((one, index) => ({ object: 'embedding', index, embedding: [...letterVector(one)] }))
      res.setHeader('content-type', 'application/json')
      res.end(JSON.stringify({ object: 'list', data }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
