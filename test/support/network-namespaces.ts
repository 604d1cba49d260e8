import { spawnSync } from 'node:child_process'

/**
 * Two network namespaces with a line between them that delays and loses packets, and a good line from each to the test:
 * where the machine allows it (root and `ip`), and with delay and loss where its kernel has netem. Always ended with
 * `remove`.
 */
export interface Namespace {
  /** Words that start a command in there. */
  readonly prefix: readonly string[]
  /** Its address on the line to the other one, and on the line to us. */
  readonly host: string
  readonly testHost: string
}

export interface Namespaces {
  readonly sides: readonly [Namespace, Namespace]
  /** Undefined when the line is long and bad; else why it is a good one. */
  readonly withoutNetem: string | undefined
  remove(): void
}

const LINE = ['delay', '20ms', '2ms', 'loss', '1%']

/** The namespaces, or why there are none. */
export function makeNamespaces(): Namespaces | string {
  if (process.getuid?.() !== 0) return 'they need root'
  const id = process.pid.toString(36)
  const names = [`spill-${id}-a`, `spill-${id}-b`]
  const remove = (): void => {
    for (const name of names) spawnSync('ip', ['netns', 'del', name])
  }
  const [a, b] = names as [string, string]
  const between = (i: number) => `s${id}${i}`
  const problem = firstProblem([
    ...names.map((name) => ['ip', 'netns', 'add', name]),
    ['ip', 'link', 'add', between(0), 'netns', a, 'type', 'veth', 'peer', 'name', between(1), 'netns', b],
    ...names.flatMap((name, i) => [
      ...up(name, between(i), `10.213.7.${i + 1}/24`),
      ['ip', '-n', name, 'link', 'set', 'lo', 'up'],
      ['ip', 'link', 'add', `t${id}${i}`, 'type', 'veth', 'peer', 'name', `u${id}${i}`, 'netns', name],
      ...up(name, `u${id}${i}`, `10.213.${8 + i}.2/24`),
      ['ip', 'addr', 'add', `10.213.${8 + i}.1/24`, 'dev', `t${id}${i}`],
      ['ip', 'link', 'set', `t${id}${i}`, 'up'],
    ]),
  ])
  if (problem !== undefined) {
    remove()
    return problem
  }
  const withoutNetem = firstProblem(
    names.map((name, i) => ['tc', '-n', name, 'qdisc', 'add', 'dev', between(i), 'root', 'netem', ...LINE]),
  )
  const side = (i: number): Namespace => ({
    prefix: ['ip', 'netns', 'exec', names[i] as string],
    host: `10.213.7.${i + 1}`,
    testHost: `10.213.${8 + i}.2`,
  })
  return { sides: [side(0), side(1)], withoutNetem, remove }
}

const up = (name: string, link: string, address: string): string[][] => [
  ['ip', '-n', name, 'addr', 'add', address, 'dev', link],
  ['ip', '-n', name, 'link', 'set', link, 'up'],
]

function firstProblem(steps: readonly string[][]): string | undefined {
  for (const [command = '', ...args] of steps) {
    const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
    if (status !== 0) return `"${command} ${args.join(' ')}" says: ${(stderr || String(error)).trim()}`
  }
  return undefined
}
