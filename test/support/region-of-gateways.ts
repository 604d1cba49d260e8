import { join } from 'node:path'
import { hashKey } from '../../src/config/key-hash.ts'
import { Child, ROOT, type TestFolder } from './child.ts'
import { pause } from './eventually.ts'
import { type Behaviour, FakeUpstream } from './fake-upstream.ts'
import { parseExposition } from './parse-exposition.ts'
import { CLIENT_KEY } from './region.ts'
import { authorization, METRICS_KEY } from './start-platform.ts'

/**
 * A region of several gateways, each a process of its own, that share the room of one engine and the limits of tenants
 * over Redis. The engine is in the test's process, so that it counts exactly what runs at once. Always ended with
 * `close`.
 */
export interface RegionOfGatewaysOptions {
  readonly folder: TestFolder
  readonly redisUrl: string
  readonly name: string
  readonly ports: readonly number[]
  readonly peer: { readonly name: string; readonly ports: readonly number[] }
  /** Answers at once on the engine, whichever gateways they come from. */
  readonly room: number
}

export const METERED_KEY = 'sk-metered'
export const HURRIED_KEY = 'sk-hurried'
/** Requests that the tenant `metered` has in each region; a minute brings one more. */
export const METERED_BURST = 20

const CLI = join(ROOT, 'src', 'cli', 'cli.ts')
const MODEL = 'llama'
const TOKEN_MS = 15
const at = (port: number): string => `http://127.0.0.1:${port}`

/** A request that began at the engine. */
export interface Began {
  readonly at: number
  readonly prompt: string
}

export class RegionOfGateways {
  readonly urls: readonly string[]
  readonly began: Began[] = []
  /** Answers of the engine that are not at their last token, and the most of them at once. */
  running = 0
  mostRunning = 0
  readonly #options: RegionOfGatewaysOptions
  readonly #engine: FakeUpstream
  readonly #gateways: (Child | undefined)[] = []

  private constructor(options: RegionOfGatewaysOptions, engine: FakeUpstream) {
    this.#options = options
    this.#engine = engine
    this.urls = options.ports.map(at)
  }

  static async start(options: RegionOfGatewaysOptions): Promise<RegionOfGateways> {
    const engine = await FakeUpstream.start()
    const region = new RegionOfGateways(options, engine)
    engine.behaviour = region.#answer
    return region
  }

  /** Resolves with the instant when the gateway listens. */
  async startGateway(nth: number): Promise<number> {
    const { folder, name, ports } = this.#options
    const file = folder.write(`${name}-${nth}.yaml`, configOf(this.#options, this.#engine.url))
    const env = { PORT: String(ports[nth]), HOST: '127.0.0.1' }
    const child = new Child({ args: [CLI, 'serve', '--config', file], env })
    this.#gateways[nth] = child
    await child.address(60_000)
    return performance.now()
  }

  /** In the middle of everything, as the machine would go. */
  async killGateway(nth: number): Promise<void> {
    const child = this.#gateways[nth]
    child?.signal('SIGKILL')
    await child?.exited(30_000)
  }

  async close(): Promise<void> {
    await Promise.all(this.#gateways.map((_, nth) => this.killGateway(nth)))
    await this.#engine.close()
  }

  /** A stream of as many tokens as were asked for, at an engine's pace. */
  readonly #answer: Behaviour = async ({ res, body, isGone }) => {
    this.running++
    let isOver = false
    // Before the last frame goes out: the gateway that reads it may send its next request at once.
    const over = (): void => {
      if (!isOver) this.running--
      isOver = true
    }
    res.on('close', over)
    const { messages, max_tokens: tokens } = body as { messages: Array<{ content: string }>; max_tokens: number }
    this.began.push({ at: performance.now(), prompt: messages[0]?.content ?? '' })
    res.writeHead(200, { 'content-type': 'text/event-stream' })
    const frame = (data: object): void => {
      res.write(`data: ${JSON.stringify({ id: 'up', model: MODEL, ...data })}\n\n`)
    }
    for (let i = 0; i < tokens && !isGone(); i++) {
      const isLast = i === tokens - 1
      if (isLast) over()
      frame({ choices: [{ index: 0, delta: { content: 'weir ' }, finish_reason: isLast ? 'length' : null }] })
      await pause(TOKEN_MS)
      // Not at once: of a request that was given up just before, the engine has not yet heard that it is gone.
      if (i === 0) this.mostRunning = Math.max(this.mostRunning, this.running)
    }
    frame({
      choices: [],
      usage: { prompt_tokens: 20, completion_tokens: tokens, total_tokens: 20 + tokens },
    })
    res.end('data: [DONE]\n\n')
  }
}

/** The sum of a metric's samples at a gateway, of those that have these labels; 0 when there is none. */
export async function gatewayMetric(url: string, name: string, labels: Record<string, string> = {}): Promise<number> {
  const text = await (await fetch(`${url}/metrics`, { headers: authorization(METRICS_KEY) })).text()
  const samples = parseExposition(text).get(name)?.samples ?? []
  return samples
    .filter(({ labels: has }) => Object.entries(labels).every(([label, value]) => has[label] === value))
    .reduce((sum, { value }) => sum + value, 0)
}

/** Where the gateways of one region see a gateway of the other: its replica. */
export const replicaAt = (region: string, url: string): string => `${region}:${MODEL}-${url.replace('http://', '')}`

function configOf(options: RegionOfGatewaysOptions, engineUrl: string): object {
  const { name, peer, room, redisUrl } = options
  const key = (from: string, to: string): string => `sk-${from}-calls-${to}`
  const tenant = (id: string, secret: string, more: object = {}): object => ({
    id,
    slo: 'calm',
    keys: [{ id: `${id}-1`, hash: hashKey(secret) }],
    ...more,
  })
  return {
    models: [{ name: MODEL }],
    pools: [
      {
        model: MODEL,
        region: name,
        backend: { kind: 'http-openai' },
        replicas: [engineUrl],
        limit: { kind: 'fixed', concurrencyMax: room },
      },
    ],
    slos: [
      { name: 'calm', ttftMs: 100_000, interTokenMs: 1_000, totalMs: 200_000 },
      { name: 'hurried', ttftMs: 400, interTokenMs: 1_000, totalMs: 20_000 },
    ],
    tenants: [
      tenant('acme', CLIENT_KEY),
      tenant('hurried', HURRIED_KEY, { slo: 'hurried', contract: 'reject' }),
      tenant('metered', METERED_KEY, { allowance: { requests: { perMinute: 1, burst: METERED_BURST } } }),
    ],
    admin: { metricsKeys: [{ id: 'prometheus', hash: hashKey(METRICS_KEY) }] },
    sharing: { redis: { url: redisUrl }, name: `region-${name}`, forgetMs: 10_000 },
    regions: {
      local: name,
      peers: [
        {
          region: peer.name,
          urls: peer.ports.map((port) => `${at(port)}/v1`),
          apiKey: key(name, peer.name),
          hash: hashKey(key(peer.name, name)),
        },
      ],
      spillMarginMs: 0,
    },
  }
}
