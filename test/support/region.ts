import { join } from 'node:path'
import { hashKey } from '../../src/config/key-hash.ts'
import { Child, ROOT, type TestFolder } from './child.ts'
import type { Namespace } from './network-namespaces.ts'
import { METRICS_KEY } from './start-platform.ts'

/** One region as an operator runs it: a gateway and its engines, each a process of its own. Always ended with `kill`. */
export interface RegionOptions {
  readonly folder: TestFolder
  readonly name: string
  readonly port: number
  /** The other region’s gateway, as this one reaches it. */
  readonly peer: { readonly name: string; readonly url: string }
  readonly engines: number
  /** Answers at once on one engine: what does not fit goes to the other region, or waits. */
  readonly concurrencyMax: number
  /** The network of its own in which every process of the region is started. */
  readonly namespace?: Namespace
}

const CLI = join(ROOT, 'src', 'cli', 'cli.ts')
const MODEL = 'llama'
export const CLIENT_KEY = 'sk-client'
/** The key with which one region calls another. */
const peerKey = (from: string, to: string): string => `sk-${from}-calls-${to}`

export class Region {
  readonly url: string
  readonly engineUrls: readonly string[]
  readonly #children: readonly Child[]

  private constructor(url: string, engineUrls: readonly string[], children: readonly Child[]) {
    this.url = url
    this.engineUrls = engineUrls
    this.#children = children
  }

  static async start(options: RegionOptions): Promise<Region> {
    const children: Child[] = []
    const started = (child: Child): Child => {
      children.push(child)
      return child
    }
    try {
      const { folder, name, port, namespace } = options
      const seen = (url: string): Promise<string> => namespace?.reach(url) ?? Promise.resolve(url)
      const words = ['engine', '--profile', 'h100-llama-8b', '--model', MODEL, '--port', '0']
      const inside = await Promise.all(
        Array.from({ length: options.engines }, () => started(run(options, words)).address(60_000)),
      )
      const file = folder.write(`${name}-${port}.yaml`, configOf(options, inside))
      const env = { PORT: String(port), HOST: namespace?.host ?? '127.0.0.1' }
      const gateway = await started(run(options, ['serve', '--config', file], env)).address(60_000)
      return new Region(await seen(gateway), await Promise.all(inside.map(seen)), children)
    } catch (error) {
      // Half a region is nobody's to kill.
      await killAll(children)
      throw error
    }
  }

  /** Gateway and engines, in one moment, by their own process ids. */
  kill(): Promise<void> {
    return killAll(this.#children)
  }
}

async function killAll(children: readonly Child[]): Promise<void> {
  for (const child of children) child.signal('SIGKILL')
  await Promise.all(children.map((child) => child.exited(30_000)))
}

function run({ namespace }: RegionOptions, words: readonly string[], env: Record<string, string> = {}): Child {
  const [command = process.execPath, ...args] = [...(namespace?.prefix ?? []), process.execPath, CLI, ...words]
  return new Child({ command, args, env })
}

function configOf({ name, peer, concurrencyMax, port }: RegionOptions, engineUrls: readonly string[]): object {
  return {
    server: { port },
    models: [{ name: MODEL }],
    pools: [
      {
        model: MODEL,
        region: name,
        backend: { kind: 'http-openai' },
        replicas: engineUrls.map((url) => `${url}/v1`),
        limit: { kind: 'fixed', concurrencyMax },
      },
    ],
    // Nobody is refused for lateness here: what is lost must be told from what is shed.
    slos: [{ name: 'calm', ttftMs: 100_000, interTokenMs: 1_000, totalMs: 200_000 }],
    tenants: [{ id: 'acme', slo: 'calm', keys: [{ id: 'k', hash: hashKey(CLIENT_KEY) }] }],
    admin: { metricsKeys: [{ id: 'prometheus', hash: hashKey(METRICS_KEY) }] },
    regions: {
      local: name,
      peers: [
        {
          region: peer.name,
          url: `${peer.url}/v1`,
          apiKey: peerKey(name, peer.name),
          hash: hashKey(peerKey(peer.name, name)),
        },
      ],
      spillMarginMs: 0,
    },
  }
}
