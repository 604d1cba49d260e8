import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * The processes of a trial, on free ports of loopback. Each is ended by its process id: by `stop`, and where this program
 * is killed by the kernel, which sends them SIGTERM at their parent's end (`setpriv --pdeathsig`).
 */
const STOP_GRACE_MS = 3_000
const READY_MS_MAX = 60_000
const LEASH =
  spawnSync('setpriv', ['--pdeathsig', 'TERM', 'true']).status === 0 ? ['setpriv', '--pdeathsig', 'TERM'] : []

export class Processes {
  readonly #children: ChildProcess[] = []

  /** A program that says `listening on URL`. */
  async startListening(args: readonly string[], dir: string): Promise<string> {
    const child = this.#start([process.execPath, ...args], dir)
    let said = ''
    const ended = once(child, 'exit').then(() => 'ended' as const)
    while (true) {
      const found = /listening on (http:\S+)/.exec(said)?.[1]
      if (found !== undefined) return found
      const chunk = once(child.stdout as NodeJS.ReadableStream, 'data').then(([bytes]) => String(bytes))
      const heard = await Promise.race([chunk, ended, sleep(READY_MS_MAX, 'late' as const, { ref: false })])
      if (heard === 'ended' || heard === 'late') throw new Error(`${args.join(' ')} ${heard}: ${said}`)
      said += heard
    }
  }

  /** A program that says nothing: `port` is where it will listen. */
  async startOn(port: number, command: readonly string[], dir: string): Promise<string> {
    const child = this.#start(command, dir)
    const url = `http://127.0.0.1:${port}`
    for (const endMs = performance.now() + READY_MS_MAX; performance.now() < endMs; await sleep(50)) {
      if (child.exitCode !== null) throw new Error(`${command.join(' ')} ended with ${child.exitCode}`)
      if (await isAnswering(url)) return url
    }
    throw new Error(`${command.join(' ')} does not listen on ${port}`)
  }

  #start(command: readonly string[], dir: string): ChildProcess {
    const [program = '', ...args] = [...LEASH, ...command]
    const env = { ...process.env, LOG_LEVEL: 'silent', NODE_ENV: 'production' }
    const child = spawn(program, args, { cwd: dir, env, stdio: ['ignore', 'pipe', 'inherit'] })
    child.on('error', () => {}) // A failed start shows as an exit, or as silence.
    this.#children.push(child)
    return child
  }

  async stop(): Promise<void> {
    await Promise.all(this.#children.splice(0).map(end))
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  const grace = new AbortController()
  const late = sleep(STOP_GRACE_MS, undefined, { signal: grace.signal }).then(
    () => child.kill('SIGKILL'),
    () => {},
  )
  await ended
  grace.abort()
  await late
}

async function isAnswering(url: string): Promise<boolean> {
  try {
    await (await fetch(url, { signal: AbortSignal.timeout(1_000) })).arrayBuffer()
    return true
  } catch {
    return false
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}
