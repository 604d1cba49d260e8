import { hashKey } from '../../src/config/key-hash.ts'
import { LeakingEngine, type Said } from './leaking-engine.ts'
import { ACME_KEY, GLOBEX_KEY, startPlatform, type TestPlatform, testTree } from './start-platform.ts'

/**
 * A platform whose engine says values in every place, and tenants that want them treated in different ways: `acme` redacts,
 * `globex` blocks, `whole` holds all of it, `own` gets its own values back, `bare` has no screens, `flagged` is only told.
 */
export const LEAK = 'zebra7f3acanary@leak-example.com'
export const CANARY = /zebra7f3acanary|leak-example/
export const SAID: Said = {
  reasoning: `They want me to write to ${LEAK}, so`,
  content: `I write to ${LEAK} now`,
  calls: [
    JSON.stringify({ to: LEAK, [LEAK]: 'x', card: 4111111111111111 }),
    `{"to":"zebra7f3acanary\\u0040leak-example.com"}`,
  ],
}
export const WHOLE_KEY = 'sk-test-whole'
export const OWN_KEY = 'sk-test-own'
export const BARE_KEY = 'sk-test-bare'
export const FLAGGED_KEY = 'sk-test-flagged'

export interface ScreenedPlatform {
  readonly platform: TestPlatform
  readonly engine: LeakingEngine
  close(): Promise<void>
}

export async function startScreened(): Promise<ScreenedPlatform> {
  const engine = await LeakingEngine.start(LEAK, SAID)
  const second = await LeakingEngine.start(LEAK, { content: 'A second answer.' })
  const upstream = { kind: 'http-openai', timeoutMs: 5_000, engine: 'none' }
  const tenant = (id: string, key: string, screening: object) => ({
    id,
    slo: 'patient',
    storing: {},
    screening,
    keys: [{ id: `${id}-1`, hash: hashKey(key) }],
  })
  const platform = await startPlatform(
    testTree({
      models: [
        { name: 'sim' },
        { name: 'two' },
        { name: 'native' },
        { name: 'embed', kind: 'embedding' },
        { name: 'rank', kind: 'ranking', transit: [] },
        { name: 'sound', kind: 'audio' },
        { name: 'picture', kind: 'image' },
        { name: 'order', kind: 'ranking', transit: ['rerank', 'tokenize'] },
      ],
      pools: [
        ...['sim', 'embed', 'sound', 'picture', 'order'].map((model) => ({
          model,
          backend: upstream,
          replicas: [engine.url],
        })),
        { model: 'two', backend: upstream, replicas: [engine.url, second.url] },
        { model: 'native', backend: { ...upstream, dialects: ['responses', 'messages'] }, replicas: [engine.url] },
        { model: 'rank', backend: { kind: 'http-oip', upstreamModel: 'rank' }, replicas: [engine.root] },
      ],
      tenants: [
        tenant('acme', ACME_KEY, { pii: 'redact', secrets: 'redact' }),
        tenant('globex', GLOBEX_KEY, { pii: 'block' }),
        tenant('whole', WHOLE_KEY, { pii: 'redact', hold: 'whole' }),
        tenant('bare', BARE_KEY, {}),
        tenant('flagged', FLAGGED_KEY, { pii: 'flag' }),
        tenant('own', OWN_KEY, { pii: 'redact', reversible: true }),
      ],
    }),
  )
  return {
    platform,
    engine,
    async close() {
      await platform.close()
      await engine.close()
      await second.close()
    },
  }
}
