import { renameSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { makeHttpBackend } from '../../src/assembly/http-backends.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { BackendConfig } from '../../src/config/schema.ts'
import type { PoolSetup } from '../../src/config/to-domain.ts'
import type { BackendUnderTest } from '../contract/backend.contract.ts'
import { TestFolder } from './child.ts'
import { type Behaviour, FakeUpstream, fails } from './fake-upstream.ts'
import { MODEL } from './start-platform.ts'

/** Endpoints of clouds on loopback: engines behind a door that lets nobody in without a good credential. */

/** Tokens as something else writes them into a file; one is good at a time. */
export class TokenDesk {
  readonly #folder = new TestFolder()
  readonly file = `${this.#folder.path}/token`
  token = ''
  #count = 0

  constructor() {
    this.issue()
  }

  /** Another token, which alone is good from now on. */
  issue(lifeS = 3_600): void {
    this.token = `secret-token-${++this.#count}-${'x'.repeat(20)}`
    // Nobody reads half a file.
    renameSync(this.#folder.write('next', JSON.stringify({ access_token: this.token, expires_in: lifeS })), this.file)
  }

  readonly guard = (req: IncomingMessage): Behaviour | undefined =>
    req.headers.authorization === `Bearer ${this.token}`
      ? undefined
      : fails(401, { error: { message: `bad token ${req.headers.authorization}` } })

  close(): void {
    this.#folder.remove()
  }
}

/** A backend as the configuration makes it. */
export function configuredBackend(url: string, backend: object): ReturnType<typeof makeHttpBackend> {
  const setup = { pool: { id: 'p', model: MODEL }, urls: new Map([['r-0', url]]) } as unknown as PoolSetup
  const replica = { id: 'r-0', poolId: 'p', model: MODEL, releaseId: 'm@1', region: 'local' }
  const whole = { kind: 'http-openai', auth: 'bearer', headers: {}, runningUsage: 'auto', dialects: [], ...backend }
  return makeHttpBackend(setup, whole as unknown as Exclude<BackendConfig, { kind: 'simulated' }>, replica, {
    clock: new LiveClock(),
  })
}

export interface CloudUnderTest extends BackendUnderTest {
  readonly upstream: FakeUpstream
}

/** Who gives credentials out, and knows the good ones. */
interface Desk {
  readonly file: string
  readonly guard: FakeUpstream['guard']
  close(): void
}

/** An endpoint at this path whose callers show a token. */
export const overTokens = (engine: string, path: string, behaviour: Behaviour): Promise<CloudUnderTest> =>
  overDesk(new TokenDesk(), { engine }, path, behaviour)

export async function overDesk(
  desk: Desk,
  more: { readonly engine: string; readonly region?: string },
  path: string,
  behaviour: Behaviour,
): Promise<CloudUnderTest> {
  const upstream = await FakeUpstream.start(behaviour)
  upstream.guard = desk.guard
  const url = new URL(path, upstream.url).href
  const { engine, region } = more
  const backend = configuredBackend(url, { engine, credential: { file: desk.file, region } })
  return {
    upstream,
    backend,
    openCount: () => upstream.openAnswers,
    close: async () => {
      await backend.close()
      await upstream.close()
      desk.close()
    },
  }
}
