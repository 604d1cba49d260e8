import { expect } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import {
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  type Tree,
  testTree,
} from './start-platform.ts'

/** Clients that never stop sending, while their key gets new secrets: not one of them is told that its key is wrong. */
const ADMIN_KEY = 'sk-test-admin'
/** The first secret is replaced, and then one that replaced another. */
export const ROTATIONS = 2
const SENDERS = 4

export function startForRotation(store: Tree): Promise<TestPlatform> {
  const admin = { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] }
  const server = { ingress: { requestsPerMinute: 1_000_000 } }
  return startPlatform(testTree({ admin, store, server }))
}

async function admin({ address }: TestPlatform, method: string, path: string, body: object = {}) {
  const response = await fetch(`${address}/admin/v1/${path}`, {
    method,
    headers: { ...authorization(ADMIN_KEY), 'content-type': 'application/json' },
    ...(method !== 'GET' && { body: JSON.stringify({ because: 'a test', ...body }) }),
  })
  const answer = (await response.json()) as { secret?: string; secrets?: ReadonlyArray<{ hash: string }> }
  expect(response.status, JSON.stringify(answer)).toBe(200)
  return answer
}

/** Sends without a pause to each gateway in turn, with the secret that is known at that moment, and counts answers. */
class Senders {
  secret: string
  /** Answers to requests that began with each secret. */
  readonly answered = new Map<string, number>()
  readonly statuses = new Map<number, number>()
  #isOver = false
  readonly #ended: Promise<unknown>
  readonly #inFlight = new Map<string, number>()

  constructor(gateways: readonly TestPlatform[], secret: string) {
    this.secret = secret
    this.#ended = Promise.all(Array.from({ length: SENDERS }, (_, i) => this.#send(gateways, i)))
  }

  async #send(gateways: readonly TestPlatform[], from: number): Promise<void> {
    for (let i = from; !this.#isOver; i++) {
      const { secret } = this
      const { address } = gateways[i % gateways.length] as TestPlatform
      count(this.#inFlight, secret, 1)
      const body = { model: MODEL, messages: [{ role: 'user', content: 'Hi.' }], max_tokens: 1 }
      const response =
        i % 3 === 0
          ? await postJson(`${address}/v1/chat/completions`, body, authorization(secret))
          : await fetch(`${address}/v1/models`, { headers: authorization(secret) })
      await response.text()
      count(this.#inFlight, secret, -1)
      count(this.answered, secret, 1)
      count(this.statuses, response.status, 1)
    }
  }

  /** Enough requests have been answered with the present secret, and none is under way with another. */
  async haveMoved(): Promise<void> {
    const isDone = (): boolean =>
      (this.answered.get(this.secret) ?? 0) >= 20 &&
      [...this.#inFlight].every(([secret, under]) => secret === this.secret || under === 0)
    await expect.poll(isDone, { timeout: 60_000 }).toBe(true)
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#ended
  }
}

const count = <K>(counts: Map<K, number>, key: K, by: number): void => void counts.set(key, (counts.get(key) ?? 0) + by)

async function everybodyKnows(gateways: readonly TestPlatform[], secret = ''): Promise<void> {
  for (const { address } of gateways) {
    const isKnown = async () => (await fetch(`${address}/v1/models`, { headers: authorization(secret) })).ok
    await expect.poll(isKnown, { timeout: 30_000, interval: 250 }).toBe(true)
  }
}

export async function rotateUnderLoad(gateways: readonly TestPlatform[]): Promise<Senders> {
  const [one] = gateways as [TestPlatform]
  await admin(one, 'POST', 'orgs', { id: 'initech', slos: ['patient'] })
  await admin(one, 'POST', 'tenants', { id: 'store', orgId: 'initech' })
  const made = await admin(one, 'POST', 'keys', { id: 'web', tenantId: 'store' })
  await everybodyKnows(gateways, made.secret)
  const senders = new Senders(gateways, made.secret ?? '')
  for (let i = 0; i < ROTATIONS; i++) {
    await senders.haveMoved()
    const { secret = '' } = await admin(one, 'POST', 'keys/web/rotate', { graceMs: 600_000 })
    // The answer waits until the others have looked (`live-tenancy.test.ts`); a slow database may take longer still.
    await everybodyKnows(gateways, secret)
    senders.secret = secret
    await senders.haveMoved()
    // Nobody uses the older one any more.
    const [older] = (await admin(one, 'GET', 'keys/web')).secrets ?? []
    await admin(one, 'DELETE', `keys/web/secrets/${older?.hash}`)
  }
  await senders.end()
  return senders
}
