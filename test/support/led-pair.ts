import { Child, TestFolder } from './child.ts'
import { eventually } from './eventually.ts'
import { pairTree, saysOfLeader } from './gateway-pair.ts'
import { MODEL } from './start-platform.ts'

/** Two gateways as processes of their own, on one PostgreSQL server. */
export interface LedGateway {
  readonly child: Child
  readonly address: string
}

export class LedPair {
  readonly #folder = new TestFolder()
  readonly #children: Child[] = []

  /** The leader first. */
  async start(url: string): Promise<readonly [LedGateway, LedGateway]> {
    const first = await this.#startOne(url)
    await eventually('it leads', async () => (await saysOfLeader(first.address)) === 'this gateway leads', 60_000)
    const second = await this.#startOne(url)
    await eventually('it follows', async () => (await saysOfLeader(second.address)) === 'another gateway leads', 60_000)
    return [first, second]
  }

  async end(): Promise<void> {
    for (const child of this.#children) await child.end()
    this.#folder.remove()
  }

  async #startOne(url: string): Promise<LedGateway> {
    const rollout = { stable: '1', canary: '2', steps: [40, 60], dwellMs: 1_000, judge: { pairsMin: 10 } }
    const models = [{ name: MODEL, releases: [{ version: '1' }, { version: '2' }], rollout }]
    const pools = ['1', '2'].map((release) => ({
      id: `p${release}`,
      model: MODEL,
      release,
      backend: { kind: 'simulated', profile: 'h100-llama-8b' },
    }))
    const config = this.#folder.write('spillway.yaml', pairTree(url, { models, pools }))
    const child = new Child({ env: { SPILLWAY_CONFIG: config } })
    this.#children.push(child)
    return { child, address: await child.address(120_000) }
  }
}
