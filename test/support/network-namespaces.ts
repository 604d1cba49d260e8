import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'

/**
 * Two network namespaces with a line between them that delays and loses packets: where the machine allows namespaces
 * (to root), and with delay and loss where its kernel has netem.
 *
 * The machine's own network is left alone: it gets no link, no address and no route, so that nothing on the machine and
 * no other run of this test, not even one that was killed, can stand between the test and its processes. The test reaches
 * a process in a namespace through a relay: a listener of ours on loopback, handed over to a process in there.
 *
 * A keeper outlives the test, however the test ends: it hears the end of a pipe that only the test holds, ends every
 * process in the namespaces and removes them.
 */
export interface Namespace {
  /** Words that start a command in there. */
  readonly prefix: readonly string[]
  /** Its address on the line to the other namespace. */
  readonly host: string
  /** The same URL as the test, outside, reaches it. */
  reach(url: string): Promise<string>
}

export interface Namespaces {
  readonly sides: readonly [Namespace, Namespace]
  /** Undefined when the line is long and bad; else why it is a good one. */
  readonly withoutNetem: string | undefined
  remove(): Promise<void>
}

const LINE = ['delay', '20ms', '2ms', 'loss', '1%']
const RELAY = fileURLToPath(new URL('namespace-relay.ts', import.meta.url))
/** Waits for the end of its input, then clears up the namespaces that it was given. */
const KEEPER = 'cat; for name in "$@"; do ip netns pids "$name" | xargs -r kill -9; ip netns del "$name"; done'

/** The namespaces, or why this machine allows none. For suites that asked for `ip` first. */
export function makeNamespaces(): Namespaces | string {
  if (process.getuid?.() !== 0) return 'they need root'
  const id = process.pid.toString(36)
  const names = [`spill-${id}-a`, `spill-${id}-b`] as const
  const [a, b] = names
  const link = (i: number) => `s${id}${i}`
  const steps = [
    ...names.map((name) => ['netns', 'add', name]),
    ['link', 'add', link(0), 'netns', a, 'type', 'veth', 'peer', 'name', link(1), 'netns', b],
    ...names.flatMap((name, i) => [
      ['-n', name, 'addr', 'add', `10.213.7.${i + 1}/24`, 'dev', link(i)],
      ['-n', name, 'link', 'set', link(i), 'up'],
      ['-n', name, 'link', 'set', 'lo', 'up'],
    ]),
  ]
  const keeper = spawn('sh', ['-c', KEEPER, 'keeper', ...names], {
    stdio: ['pipe', 'ignore', 'ignore'],
    // A group of its own: Ctrl-C is for the test, and the keeper clears up after it.
    detached: true,
  })
  const problem = firstProblem(steps.map((step) => ['ip', ...step]))
  if (problem !== undefined) {
    keeper.stdin.end()
    return problem
  }
  const withoutNetem = firstProblem(
    names.map((name, i) => ['tc', '-n', name, 'qdisc', 'add', 'dev', link(i), 'root', 'netem', ...LINE]),
  )
  const side = (name: string, host: string) => new RelayedNamespace(['ip', 'netns', 'exec', name], host)
  const sides = [side(a, '10.213.7.1'), side(b, '10.213.7.2')] as const
  const remove = async (): Promise<void> => {
    const ended = new Promise((resolve) => keeper.once('exit', resolve))
    keeper.stdin.end()
    await ended
  }
  return { sides, withoutNetem, remove }
}

export class RelayedNamespace implements Namespace {
  readonly prefix: readonly string[]
  readonly host: string
  #relay: ChildProcess | undefined

  constructor(prefix: readonly string[], host: string) {
    this.prefix = prefix
    this.host = host
  }

  async reach(url: string): Promise<string> {
    const { hostname, port } = new URL(url)
    const listener = createServer()
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
    const address = listener.address() as { port: number }
    await new Promise<void>((resolve, reject) => {
      this.#startedRelay().send({ hostname, port: Number(port) }, listener, (error) =>
        error ? reject(error) : resolve(),
      )
    })
    // From now on only the relay accepts what comes in here.
    listener.close()
    return `http://127.0.0.1:${address.port}`
  }

  /** The relay ends with the pipe to us. */
  end(): void {
    this.#relay?.disconnect()
    this.#relay = undefined
  }

  #startedRelay(): ChildProcess {
    const [command, ...words] = [...this.prefix, process.execPath, RELAY]
    this.#relay ??= spawn(command ?? 'ip', words, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
    return this.#relay
  }
}

function firstProblem(steps: readonly string[][]): string | undefined {
  for (const [command = '', ...args] of steps) {
    const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
    if (status !== 0) return `"${command} ${args.join(' ')}" says: ${(stderr || String(error)).trim()}`
  }
  return undefined
}
