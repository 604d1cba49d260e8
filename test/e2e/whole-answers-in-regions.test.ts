import { afterAll, beforeAll, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { eventually } from '../support/eventually.ts'
import { sendForm } from '../support/large-form.ts'
import { PassingEngine, takes } from '../support/passing-engine.ts'
import { authorization, postJson, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** Tensors and what is passed through are sent on to another region's gateway as chats are. */

const PEER_KEY = 'sk-peer-of-the-other-region'
const MODELS = [
  { name: 'embed', kind: 'embedding' },
  { name: 'see', kind: 'vision' },
  { name: 'whisper', kind: 'audio' },
]

let far: TestPlatform
let near: TestPlatform
let engine: PassingEngine

beforeAll(async () => {
  const simulated = { kind: 'simulated', profile: 'h100-llama-1b' }
  engine = await PassingEngine.start(takes())
  const well = { model: 'whisper', region: 'far', backend: { kind: 'http-openai' }, replicas: [engine.url] }
  far = await startPlatform(
    testTree({
      models: MODELS,
      pools: [...['embed', 'see'].map((model) => ({ model, region: 'far', backend: simulated })), well],
      regions: {
        local: 'far',
        peers: [{ region: 'near', url: 'http://127.0.0.1:1/v1', apiKey: 'sk-unused', hash: hashKey(PEER_KEY) }],
      },
    }),
  )
  // Its own engines are not there.
  const gone = (kind: string) => ({
    kind: kind === 'vision' ? 'http-oip' : 'http-openai',
    timeoutMs: 1_000,
  })
  near = await startPlatform(
    testTree({
      models: MODELS,
      pools: MODELS.map(({ name, kind }) => ({
        model: name,
        region: 'near',
        backend: gone(kind),
        replicas: ['http://127.0.0.1:1/v1'],
      })),
      regions: { local: 'near', peers: [{ region: 'far', url: far.baseURL, apiKey: PEER_KEY }] },
    }),
  )
})
afterAll(async () => {
  await near.close()
  await far.close()
  await engine.close()
})

const sentOn = () => {
  far.journal.drain()
  return far.entries.filter((entry) => entry.kind === 'settled' && entry.outcome === 'completed')
}

it('sends no vectors on: the other region may run another release, whose vectors mean something else', async () => {
  const response = await postJson(`${near.baseURL}/embeddings`, { model: 'embed', input: ['a', 'b'] })
  expect(response.status).toBe(503)
  expect(sentOn()).toEqual([])
})

it('sends tensors on', async () => {
  const image = { name: 'image', datatype: 'FP32', shape: [1, 3, 1, 1], data: [0.9, 0, 0] }
  const url = `${near.baseURL.replace(/\/v1$/, '')}/v2/models/see/infer`
  const response = await eventually('the other region answers', async () => {
    const answer = await postJson(url, { inputs: [image], id: 'mine' })
    return answer.status === 200 && answer
  })
  expect(await response.json()).toMatchObject({ model_name: 'see', id: 'mine', outputs: [{ data: ['red'] }, {}] })
  expect(sentOn().at(-1)).toMatchObject({ tenantId: 'acme', model: 'see' })
})

it('sends a form on as it comes', async () => {
  const answer = await eventually('the other region answers', async () => {
    const fileBytes = 3 << 20
    const url = `${near.baseURL}/audio/transcriptions`
    const sent = await sendForm({ url, headers: authorization(), before: { model: 'whisper' }, fileBytes })
    return sent.status === 200 && sent
  })
  expect(answer.text).toBe('{"text":"a weir"}')
  expect(engine.seen.at(-1)?.body?.hash).toBe(answer.hash)
  expect(sentOn().at(-1)).toMatchObject({ tenantId: 'acme', model: 'whisper' })
})
