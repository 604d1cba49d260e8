import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Cancellation } from '../../src/base/cancellation.ts'
import { LiveClock } from '../../src/base/live-clock.ts'
import type { Embedder } from '../../src/lifecycle/retrieval-ports.ts'
import { makePlatformVectors } from '../../src/main/platform-vectors.ts'
import { BatchingEmbedder } from '../../src/retrieval/embedders/batching-embedder.ts'
import { CachedEmbedder } from '../../src/retrieval/embedders/cached-embedder.ts'
import { HttpEmbedder } from '../../src/retrieval/embedders/http-embedder.ts'
import { UseLiteEmbedder } from '../../src/retrieval/embedders/live-use-lite.ts'
import { PlatformEmbedder } from '../../src/retrieval/embedders/platform-embedder.ts'
import { startEmbedder } from '../support/servers.ts'
import { ACME_KEY, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** What every embedder owes (`lifecycle/retrieval-ports.ts`), whoever makes its vectors. */
interface Under {
  readonly embedder: Embedder
  readonly close: () => Promise<unknown>
}

const EMBED = 'embed'
const clock = new LiveClock()

function embeddingPlatform(): Promise<TestPlatform> {
  const pools = [{ model: EMBED, backend: { kind: 'simulated', profile: 'h100-llama-1b' } }]
  return startPlatform(testTree({ models: [{ name: EMBED, kind: 'embedding' }], pools }))
}

const overPlatform = async (textsMax = 8): Promise<Under & { platform: TestPlatform }> => {
  const platform = await embeddingPlatform()
  const ask = makePlatformVectors({ clock, platform: () => platform.platform, model: EMBED, timeoutMs: 5_000 })
  const embedder = new PlatformEmbedder({ model: EMBED, dimensions: 768, textsMax, ask })
  return { embedder, platform, close: () => platform.close() }
}

const KINDS: ReadonlyArray<readonly [string, () => Promise<Under>]> = [
  ['the one that comes along', () => Promise.resolve({ embedder: new UseLiteEmbedder(clock), close: nothing })],
  [
    'a server’s',
    async () => {
      const server = await startEmbedder()
      const options = { url: server.url, model: 'letters', dimensions: 26, apiKey: undefined }
      return { embedder: new HttpEmbedder({ ...options, timeoutMs: 5_000 }), close: () => server.close() }
    },
  ],
  ['the platform’s own', () => overPlatform()],
  [
    'the platform’s own over its front door',
    async () => {
      const platform = await embeddingPlatform()
      const options = { url: platform.baseURL, model: EMBED, dimensions: 768, apiKey: ACME_KEY, timeoutMs: 5_000 }
      return { embedder: new HttpEmbedder(options), close: () => platform.close() }
    },
  ],
  [
    'the platform’s own, gathered and remembered',
    async () => {
      const { embedder, close } = await overPlatform()
      const gathering = new BatchingEmbedder(embedder, clock, { textsMax: 4, waitUs: 2_000 })
      return { embedder: new CachedEmbedder(gathering), close }
    },
  ],
]

const nothing = (): Promise<void> => Promise.resolve()
const dot = (a: Float32Array, b: Float32Array): number => a.reduce((sum, part, i) => sum + part * b[i]!, 0)

describe.each(KINDS)('embedder: %s', (_name, make) => {
  let under: Under
  beforeAll(async () => {
    under = await make()
    // The first text loads what knows the words, which is not what a test here is about.
    await under.embedder.embed(['hello'], { kind: 'question' })
  }, 60_000)
  afterAll(async () => {
    await under.embedder.close()
    await under.close()
  })

  it('has a name', () => {
    expect(under.embedder.name).not.toBe('')
  })

  it.each(['question', 'passage'] as const)('gives a vector of length 1 for each text, in order: %s', async (kind) => {
    const { embedder } = under
    const texts = Array.from({ length: 11 }, (_, i) => `Passage ${i} is about ${'abcdefghijk'[i]!.repeat(i + 2)}.`)
    const vectors = await embedder.embed(texts, { kind })
    expect(vectors).toHaveLength(texts.length)
    for (const [i, vector] of vectors.entries()) {
      expect(vector).toHaveLength(embedder.dimensions)
      expect(dot(vector, vector)).toBeCloseTo(1, 4)
      const [alone] = await embedder.embed([texts[i]!], { kind })
      expect(dot(vector, alone!)).toBeGreaterThan(0.999)
    }
  })

  it('gives nothing for nothing', async () => {
    expect(await under.embedder.embed([], { kind: 'passage' })).toEqual([])
  })

  it('throws when it is called off, at once', async () => {
    const cancellation = new Cancellation()
    const asked = under.embedder.embed(['never mind'], { kind: 'question', cancellation })
    cancellation.cancel('late')
    await expect(asked).rejects.toThrow(/./)
  })
})

describe('the platform’s own embedder', () => {
  it('sends sets as large as a batch, as the platform’s own tenant: questions first, passages when there is room', async () => {
    const { embedder, platform, close } = await overPlatform(8)
    await embedder.embed(
      Array.from({ length: 20 }, (_, i) => `text ${i}`),
      { kind: 'passage' },
    )
    await embedder.embed(['why?'], { kind: 'question' })
    platform.journal.drain()
    const arrived = platform.entries.filter((entry) => entry.kind === 'arrived')
    expect(arrived).toMatchObject([
      { tenantId: 'spillway', model: EMBED, band: 'offline' },
      { band: 'offline' },
      { band: 'offline' },
      { band: 'interactive' },
    ])
    await close()
  })

  it('says why when the platform does not answer, and nothing after it is closed', async () => {
    const { embedder, platform, close } = await overPlatform()
    const drained = platform.platform.drain()
    await expect(embedder.embed(['x'], { kind: 'question' })).rejects.toThrow('shutting-down')
    await drained
    await embedder.close()
    await expect(embedder.embed(['x'], { kind: 'question' })).rejects.toThrow('closed')
    await close()
  })

  it('refuses vectors of another length than its corpora have', async () => {
    const ask = () => Promise.resolve([new Float32Array(3)])
    const embedder = new PlatformEmbedder({ model: 'm', dimensions: 4, textsMax: 8, ask })
    await expect(embedder.embed(['x'], { kind: 'question' })).rejects.toThrow('3 dimensions instead of 4')
  })
})
