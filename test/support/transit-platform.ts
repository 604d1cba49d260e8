import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from './eventually.ts'
import { PassingEngine, takes } from './passing-engine.ts'
import { authorization, startPlatform, type TestPlatform, type Tree, testTree } from './start-platform.ts'

/** A platform in front of one engine with endpoints that are passed through. */
export const MiB = 1 << 20
export const ADMIN_KEY = 'sk-test-admin'
/** Tokens a minute of the tenant `globex`. */
export const GLOBEX_TOKENS = 2_500

/** Tests send more in a minute than one client should. */
const MUCH = { ingress: { bytesPerMinute: 1_000_000_000_000 } }

export interface TransitWorld {
  readonly engine: PassingEngine
  readonly platform: TestPlatform
  readonly url: (path: string) => string
  /** Nothing is held any more: no call at the engine, no lease, no bytes in memory. */
  isFree(): Promise<void>
  close(): Promise<void>
}

/** `deadUrls` are replicas of the model `whisper` that nobody answers at. */
export async function startTransit(server: Tree = {}, deadUrls: readonly string[] = []): Promise<TransitWorld> {
  const engine = await PassingEngine.start(takes())
  const pool = (model: string, more: Tree = {}) => ({
    model,
    backend: { kind: 'http-openai', timeoutMs: 5_000, ...more },
    replicas: [engine.url],
    limit: { kind: 'fixed', concurrencyMax: 8 },
  })
  const tree = testTree({
    server: {
      port: 0,
      headersTimeoutMs: 1_000,
      requestTimeoutMs: 1_000,
      uploadBytesMax: 256 * MiB,
      ...MUCH,
      ...server,
    },
    admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
    models: [
      { name: 'whisper', kind: 'audio', aliases: ['whisper-1'] },
      { name: 'tts', kind: 'audio' },
      { name: 'flux', kind: 'image' },
      { name: 'reranker', kind: 'ranking' },
      { name: 'llama', transit: ['tokenize'] },
    ],
    pools: [
      { ...pool('whisper', { upstreamModel: 'org/whisper', engine: 'none' }), replicas: [...deadUrls, engine.url] },
      pool('tts'),
      pool('flux'),
      pool('reranker'),
      pool('llama'),
    ],
  })
  const [acme, globex] = tree['tenants'] as Tree[]
  globex!['allowance'] = { tokens: { perMinute: GLOBEX_TOKENS, burst: GLOBEX_TOKENS } }
  const platform = await startPlatform({ ...tree, tenants: [acme, globex] })
  return {
    engine,
    platform,
    url: (path) => platform.baseURL.replace(/\/v1$/, path),
    async isFree() {
      await eventually('the engine is free', () => engine.openCount === 0 || undefined)
      await eventually('no lease is out', () => platform.platform.turnstile.view().inFlight === 0 || undefined)
    },
    async close() {
      await platform.close()
      await engine.close()
    },
  }
}

/** A key of the tenant `acme` with these terms, made by an administrator. */
export async function makeKeyWith({ url }: TransitWorld, id: string, terms: object): Promise<string> {
  const ask = async (path: string, body: object): Promise<{ secret?: string }> => {
    const response = await fetch(url(`/admin/v1/${path}`), {
      method: 'POST',
      headers: { ...authorization(ADMIN_KEY), 'content-type': 'application/json' },
      body: JSON.stringify({ because: 'a test', ...body }),
    })
    if (!response.ok) throw new Error(await response.text())
    return (await response.json()) as { secret?: string }
  }
  await ask('orgs', { id: `org-${id}`, slos: ['patient'] })
  await ask('tenants', { id: `tenant-${id}`, orgId: `org-${id}`, slo: 'patient' })
  return (await ask('keys', { id, tenantId: `tenant-${id}`, terms })).secret ?? ''
}
