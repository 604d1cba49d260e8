import { spawnSync } from 'node:child_process'

/**
 * Two network namespaces with a line between them that delays and loses packets, where the machine allows it: root, `ip`
 * and a kernel with netem. Always ended with `remove`.
 */
export interface Namespaces {
  /** Words that start a command in there, and its address. */
  readonly sides: ReadonlyArray<{ readonly prefix: readonly string[]; readonly host: string }>
  remove(): void
}

const LINE = ['delay', '20ms', '2ms', 'loss', '1%']

/** The namespaces, or why there are none. */
export function makeNamespaces(): Namespaces | string {
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  const id = process.pid.toString(36)
  const names = [`spill-${id}-a`, `spill-${id}-b`]
  const remove = (): void => {
    for (const name of names) spawnSync('ip', ['netns', 'del', name])
  }
  const hosts = ['10.213.7.1', '10.213.7.2']
  const [a, b] = names as [string, string]
  const steps: string[][] = [
    ...names.map((name) => ['ip', 'netns', 'add', name]),
    ['ip', 'link', 'add', `sv${id}a`, 'netns', a, 'type', 'veth', 'peer', 'name', `sv${id}b`, 'netns', b],
    ...names.flatMap((name, i) => {
      const link = `sv${id}${i === 0 ? 'a' : 'b'}`
      return [
        ['ip', '-n', name, 'addr', 'add', `${hosts[i]}/24`, 'dev', link],
        ['ip', '-n', name, 'link', 'set', link, 'up'],
        ['ip', '-n', name, 'link', 'set', 'lo', 'up'],
        ['tc', '-n', name, 'qdisc', 'add', 'dev', link, 'root', 'netem', ...LINE],
      ]
    }),
  ]
  for (const [command = '', ...args] of steps) {
    const { status, stderr, error } = spawnSync(command, args, { encoding: 'utf8' })
    if (status === 0) continue
    remove()
    return `"${command} ${args.join(' ')}" failed: ${(stderr || String(error)).trim()}`
  }
  return {
    sides: names.map((name, i) => ({ prefix: ['ip', 'netns', 'exec', name], host: hosts[i] as string })),
    remove,
  }
}
