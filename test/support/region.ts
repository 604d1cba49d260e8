import { join } from 'node:path'
import { hashKey } from '../../src/config/key-hash.ts'
import { Child, ROOT, type TestFolder } from './child.ts'

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
  /** Words to put before every command: how a process is started in a network of its own. */
  readonly prefix?: readonly string[]
  /** Where the test reaches its processes; they then listen everywhere. */
  readonly testHost?: string
}

const CLI = join(ROOT, 'src', 'cli', 'cli.ts')
const MODEL = 'llama'
export const CLIENT_KEY = 'sk-client'
/** The key with which one region calls another. */
const peerKey = (from: string, to: string): string => `sk-${from}-calls-${to}`

export class Region {
  readonly url: string
  readonly engines: readonly { readonly child: Child; readonly url: string }[]
  readonly gateway: Child
  readonly #children: readonly Child[]

  private constructor(url: string, engines: Region['engines'], gateway: Child) {
    this.url = url
    this.engines = engines
    this.gateway = gateway
    this.#children = [gateway, ...engines.map(({ child }) => child)]
  }

  static async start(options: RegionOptions): Promise<Region> {
    const { folder, name, port, testHost } = options
    const host = testHost === undefined ? '127.0.0.1' : '0.0.0.0'
    const seen = (url: string): string => url.replace('0.0.0.0', testHost ?? '127.0.0.1')
    const engines = await Promise.all(
      Array.from({ length: options.engines }, async () => {
        const words = ['engine', '--profile', 'h100-llama-8b', '--model', MODEL, '--port', '0']
        const child = run(options, words, { SPILLWAY_ENGINE_LISTEN_HOST: host })
        return { child, url: await child.address(60_000) }
      }),
    )
    const inside = engines.map(({ url }) => url.replace('0.0.0.0', '127.0.0.1'))
    const file = folder.write(`${name}-${port}.yaml`, configOf(options, inside))
    const gateway = run(options, ['serve', '--config', file], { PORT: String(port), HOST: host })
    const url = await gateway.address(60_000)
    return new Region(
      seen(url),
      engines.map((engine) => ({ ...engine, url: seen(engine.url) })),
      gateway,
    )
  }

  /** Gateway and engines, in one moment, by their own process ids. */
  async kill(): Promise<void> {
    for (const child of this.#children) child.signal('SIGKILL')
    await Promise.all(this.#children.map((child) => child.exited(30_000)))
  }
}

function run({ prefix = [] }: RegionOptions, words: readonly string[], env: Record<string, string>): Child {
  const [command = process.execPath, ...before] = [...prefix, process.execPath, CLI, ...words]
  return new Child({ command, args: before, env })
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
