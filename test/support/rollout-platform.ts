import { hashKey } from '../../src/config/key-hash.ts'
import { InsideEngine } from './engine-process.ts'
import { MODEL, postJson, startPlatform, type TestPlatform, testTree } from './start-platform.ts'

/** A live server with two releases on simulated engines behind HTTP; a test makes the new one faulty. */
export const ROLLOUT_ADMIN_KEY = 'sk-test-admin'

export interface RolloutSettings {
  readonly rollout: Record<string, unknown>
  /** Flags of the canary's engine. */
  readonly canary?: readonly string[]
  /** What the engine of each stable pool may have in flight. */
  readonly stableLimits?: readonly number[]
}

export async function startRollout(
  { rollout, canary = [], stableLimits = [64] }: RolloutSettings,
  closing: Array<() => Promise<unknown>>,
): Promise<TestPlatform> {
  const startEngine = (...flags: readonly string[]) =>
    InsideEngine.start('--profile', 'h100-llama-8b', '--model', MODEL, ...flags)
  const engines = await Promise.all([startEngine(...canary), ...stableLimits.map(() => startEngine())])
  for (const engine of engines) closing.push(() => engine.stop())
  const [tried, ...stable] = engines as [InsideEngine, ...InsideEngine[]]
  const pool = (id: string, release: string, url: string, concurrencyMax = 64) => ({
    id,
    model: MODEL,
    release,
    backend: { kind: 'http-openai', upstreamModel: MODEL, timeoutMs: 20_000 },
    replicas: [`${url}/v1`],
    limit: { kind: 'fixed', concurrencyMax },
  })
  const platform = await startPlatform(
    testTree({
      admin: { keys: [{ id: 'ada', hash: hashKey(ROLLOUT_ADMIN_KEY) }] },
      models: [{ name: MODEL, releases: [{ version: '1' }, { version: '2' }], rollout: { stable: '1', ...rollout } }],
      pools: [
        ...stable.map(({ url }, i) => pool(`stable-${i}`, '1', url, stableLimits[i])),
        pool('tried', '2', tried.url),
      ],
    }),
  )
  closing.push(() => platform.close())
  return platform
}

export const QUESTION = 'What is a weir? A weir is a low dam that holds the water of a river.'

export const askRollout = (
  platform: TestPlatform,
  session: number,
  headers: Record<string, string> = {},
  outputTokensMax = 8,
) =>
  postJson(
    `${platform.baseURL}/chat/completions`,
    { model: MODEL, messages: [{ role: 'user', content: QUESTION }], max_tokens: outputTokensMax, temperature: 0 },
    { 'x-session-id': `s${session}`, ...headers },
  )
