import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  ACME_KEY,
  GLOBEX_KEY,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** `/v1/moderations` as OpenAI's own client uses it, with the keys and budgets of every other route. */
const HARSH = 'They undressed and had passionate sex all night.'
const CALM = 'Could you suggest a nice restaurant near the station?'

let platform: TestPlatform
let client: OpenAI

beforeAll(async () => {
  const tree = testTree()
  const [acme, globex] = tree['tenants'] as Array<Record<string, unknown>>
  globex!['allowance'] = { tokens: { perMinute: 60, burst: 60 } }
  platform = await startPlatform({ ...tree, tenants: [acme, globex] })
  client = new OpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY, maxRetries: 0 })
})
afterAll(() => platform.close())

const post = (body: object, key = ACME_KEY) =>
  postJson(`${platform.baseURL}/moderations`, body, { authorization: `Bearer ${key}` })

describe('OpenAI’s client', () => {
  it('gets one result per text', async () => {
    const { id, model, results } = await client.moderations.create({ input: [HARSH, CALM] })
    expect(id).toMatch(/^modr-/)
    expect(model).toBe('omni-moderation-latest')
    expect(results.map(({ flagged }) => flagged)).toEqual([true, false])
    expect(results[0]!.categories.sexual).toBe(true)
    expect(results[0]!.category_scores.sexual).toBeGreaterThan(results[1]!.category_scores.sexual)
    expect(results[0]!.category_applied_input_types.sexual).toEqual(['text'])
    expect(results[0]!.category_applied_input_types.illicit).toEqual([])
    expect(results[0]!.category_scores.illicit).toBe(0)
  })

  it('gets one result for the parts of an input; pictures are not looked at', async () => {
    const { results } = await client.moderations.create({
      model: 'omni-moderation-2024-09-26',
      input: [
        { type: 'text', text: HARSH },
        { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
      ],
    })
    expect(results).toHaveLength(1)
    expect(results[0]!.flagged).toBe(true)
    const picture = await client.moderations.create({
      input: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }],
    })
    expect(picture.results[0]!.flagged).toBe(false)
    expect(Object.values(picture.results[0]!.category_applied_input_types).flat()).toEqual([])
  })

  it('is told what is wrong', async () => {
    const wrong = client.moderations.create({ input: 'a', model: 'gpt-7' })
    await expect(wrong).rejects.toMatchObject({ status: 400, param: 'model' })
    const stranger = new OpenAI({ baseURL: platform.baseURL, apiKey: 'sk-none', maxRetries: 0 })
    await expect(stranger.moderations.create({ input: 'a' })).rejects.toMatchObject({ status: 401 })
  })
})

it('spends the tenant’s tokens by the length of its texts', async () => {
  const first = await post({ input: 'a'.repeat(200) }, GLOBEX_KEY)
  expect(first.status).toBe(200)
  expect((await post({ input: 'a'.repeat(200) }, GLOBEX_KEY)).status).toBe(429)
})

it('reads a long text without harm to others', async () => {
  const answer = await post({ input: 'We ship your order tomorrow. '.repeat(20_000) })
  expect(answer.status).toBe(200)
})
