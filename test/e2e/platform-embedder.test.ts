import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { ACME_KEY, MODEL, postJson, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** Corpora whose vectors the platform's own embedding model makes, and a chat that is answered from them. */

const HANDBOOK = `# Refunds
Money goes back to the original payment method within ten business days.

# Pets
Small pets may travel in the cabin inside an approved carrier.`

let platform: TestPlatform
let client: OpenAI

beforeAll(async () => {
  platform = await startPlatform(
    testTree({
      models: [{ name: MODEL }, { name: 'embed', kind: 'embedding' }],
      pools: [
        { model: MODEL, backend: { kind: 'simulated', profile: 'h100-llama-8b' } },
        { model: 'embed', backend: { kind: 'simulated', profile: 'h100-llama-1b' } },
      ],
      retrieval: { budgetMs: 5_000, embedder: { kind: 'platform', model: 'embed' } },
    }),
  )
  client = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
  const { id } = await client.vectorStores.create({ name: 'handbook' })
  const file = await toFile(Buffer.from(HANDBOOK), 'handbook.md')
  const added = await client.vectorStores.files.uploadAndPoll(id, file, { pollIntervalMs: 50 })
  expect(added).toMatchObject({ status: 'completed' })
}, 60_000)
afterAll(() => platform.close())

it('indexes and searches through the platform’s own model, as its own tenant', async () => {
  const body = {
    model: MODEL,
    messages: [{ role: 'user', content: 'May small pets travel?' }],
    spillway: { retrieval: { corpus: 'handbook', top_k: 1, include_passages: true } },
  }
  const response = await postJson(`${platform.baseURL}/chat/completions`, body)
  expect(response.headers.get('x-spillway-retrieval')).toBe('fresh')
  const answer = (await response.json()) as { spillway: { retrieval: { passages: Array<{ text: string }> } } }
  expect(JSON.stringify(answer.spillway.retrieval)).toContain('approved carrier')
  platform.journal.drain()
  const own = platform.entries.filter((entry) => entry.kind === 'settled' && entry.tenantId === 'spillway')
  expect(own).not.toHaveLength(0)
  for (const entry of own) expect(entry).toMatchObject({ outcome: 'completed', model: 'embed' })
})
