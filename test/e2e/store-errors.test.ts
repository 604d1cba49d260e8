import { afterAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/servers.ts'
import { authorization, MODEL, postJson, type TestPlatform } from '../support/start-platform.ts'
import { addCorpus, addModel, PLACES, startWithStore } from '../support/store-errors.ts'

/** What a client and an administrator are told when the store is away: 503 and a reason, no place. */

const open: TestPlatform[] = []
afterAll(async () => {
  for (const one of open) await one.close()
})

async function start(...args: Parameters<typeof startWithStore>): Promise<TestPlatform> {
  const platform = await startWithStore(...args)
  open.push(platform)
  return platform
}

describe('a store that is away', () => {
  it('is a 503 without its address, for tenants and administrators; the operator reads the address', async () => {
    const port = await freePort()
    const platform = await start({ url: `postgres://someone:secret@127.0.0.1:${port}/name` })
    for (const asked of [await addCorpus(platform, 'c'), await addModel(platform, 'm')]) {
      expect(asked.status).toBe(503)
      const text = await asked.text()
      expect(text).toContain('cannot be reached')
      expect(text).not.toMatch(PLACES)
    }
    expect(platform.printed).toContain(`127.0.0.1:${port}`)
    expect(platform.printed).not.toContain('secret')
  }, 60_000)

  it('is named without its address in a chat answer, and so is an embedder', async () => {
    const port = await freePort()
    const embedder = { url: `http://127.0.0.1:${port}/v1`, model: 'letters', dimensions: 26, batchWaitMs: 0 }
    const platform = await start({}, { embedder, budgetMs: 2_000 })
    expect((await addCorpus(platform, 'pumps')).status).toBe(200)
    const documents = [{ name: 'd', text: 'Pump 1 runs at 10 bar.' }]
    await postJson(`${platform.baseURL}/vector_stores/pumps/documents`, { documents })
    await eventually('the words are there', async () => {
      const response = await fetch(`${platform.baseURL}/vector_stores/pumps`, { headers: authorization() })
      return ((await response.json()) as { spillway: { passages: number } }).spillway.passages > 0
    })
    const response = await postJson(`${platform.baseURL}/chat/completions`, {
      model: MODEL,
      messages: [{ role: 'user', content: 'At how many bar does the pump run?' }],
      max_tokens: 4,
      spillway: { retrieval: { corpus: 'pumps' } },
    })
    const text = await response.text()
    expect(text).toContain('the embedder failed')
    expect(text).not.toMatch(PLACES)
  }, 60_000)
})
