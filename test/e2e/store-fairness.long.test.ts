import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { startEmbedder } from '../support/servers.ts'
import { authorization, GLOBEX_KEY, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'
import { call } from '../support/store-calls.ts'

/** One tenant's calls of corpora and files do not hold up another's. */

describe('a tenant that does nothing but search and join files', () => {
  let platform: TestPlatform
  let embedder: Awaited<ReturnType<typeof startEmbedder>>
  beforeAll(async () => {
    embedder = await startEmbedder()
    const retrieval = { embedder: { url: embedder.url, model: 'letters', dimensions: 26, batchWaitMs: 0 } }
    platform = await startPlatform(testTree({ retrieval }))
    expect((await call(platform, 'POST', '/vector_stores', { name: 'pumps' })).status).toBe(200)
    const documents = Array.from({ length: 20 }, (_, i) => ({ name: `d${i}`, text: `Pump ${i} runs at ${i}0 bar.` }))
    await call(platform, 'POST', '/vector_stores/pumps/documents', { documents })
    const form = new FormData()
    form.append('file', new File(['A text of its own.'], 'own.txt'))
    const uploaded = await fetch(`${platform.baseURL}/files`, { method: 'POST', headers: authorization(), body: form })
    const { id } = (await uploaded.json()) as { id: string }
    sameFile = Array.from({ length: 500 }, () => id)
    expect((await call(platform, 'POST', '/vector_stores', { name: 'theirs' }, GLOBEX_KEY)).status).toBe(200)
  }, 60_000)
  afterAll(async () => {
    await platform?.close()
    await embedder?.close()
  })

  /** A file 500 times: as many as one call may name. */
  let sameFile: readonly string[]

  it('holds up another tenant’s list call by a few of its answers at most', async () => {
    let isOver = false
    let answered = 0
    const attacker = async (n: number): Promise<void> => {
      for (let i = 0; !isOver; i++) {
        const { status } =
          n % 2 === 0
            ? await call(platform, 'POST', '/vector_stores/pumps/search', { query: `pump ${n} ${i} bar` })
            : await call(platform, 'POST', '/vector_stores/pumps/file_batches', { file_ids: sameFile })
        expect([200, 429]).toContain(status)
        answered++
      }
    }
    const attack = Promise.all(Array.from({ length: 8 }, (_, n) => attacker(n)))
    await eventually('the attack runs', () => answered >= 24, 30_000)
    const delays: number[] = []
    for (let i = 0; i < 9; i++) {
      const before = answered
      // A list call that is starved must not keep the attack going for ever.
      const patience = setTimeout(() => {
        isOver = true
      }, 10_000)
      const listed = await call(platform, 'GET', '/vector_stores', undefined, GLOBEX_KEY)
      clearTimeout(patience)
      expect(listed.status).toBe(200)
      delays.push(answered - before)
    }
    expect(isOver).toBe(false)
    isOver = true
    await attack
    // Each connection may be answered twice meanwhile: its present search, and the machine's own delays. A machine that
    // stands still for a moment holds up one call or two, an unfair queue all of them.
    expect(delays.toSorted((a, b) => a - b)[4], delays.join(' ')).toBeLessThanOrEqual(16)
  }, 60_000)
})
