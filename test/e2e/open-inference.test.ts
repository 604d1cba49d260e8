import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTriton, TRITON_MODEL } from '../support/fake-triton.ts'
import type { ScriptedServer } from '../support/scripted-server.ts'
import {
  authorization,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  testTree,
} from '../support/start-platform.ts'

/** The Open Inference Protocol at the front door: simulated ranking and vision, and a Triton server behind. */

let triton: ScriptedServer
let platform: TestPlatform
let root: string

beforeAll(async () => {
  triton = await startTriton()
  const simulated = { kind: 'simulated', profile: 'h100-llama-1b' }
  platform = await startPlatform(
    testTree({
      models: [
        { name: MODEL },
        { name: 'team/rank', kind: 'ranking', contextTokensMax: 200 },
        { name: 'see', kind: 'vision' },
        { name: 'embed', kind: 'embedding' },
        { name: 'far', kind: 'vision' },
        { name: 'texts', kind: 'embedding' },
      ],
      pools: [
        { model: MODEL, backend: { kind: 'simulated' } },
        { model: 'team/rank', backend: simulated },
        { model: 'see', backend: simulated },
        { model: 'embed', backend: simulated },
        { model: 'far', backend: { kind: 'http-oip', upstreamModel: TRITON_MODEL }, replicas: [triton.url] },
        { model: 'texts', backend: { kind: 'http-openai', engine: 'none' }, replicas: ['http://127.0.0.1:1/v1'] },
      ],
    }),
  )
  root = platform.baseURL.replace(/\/v1$/, '/v2')
})
afterAll(async () => {
  await platform.close()
  await triton.close()
})

const get = (path: string, headers = authorization()) => fetch(root + path, { headers })
const infer = (model: string, body: object) => postJson(`${root}/models/${model}/infer`, body)
const texts = (name: string, ...data: string[]) => ({ name, datatype: 'BYTES', shape: [data.length], data })

interface Answer {
  readonly model_name: string
  readonly id: string
  readonly outputs: ReadonlyArray<{ name: string; shape: number[]; data: unknown[] }>
}

describe('the server', () => {
  it.each(['', '/health/live', '/health/ready'])('answers %s without a key', async (path) => {
    const response = await get(path, {})
    expect(response.status).toBe(200)
    expect(await response.json()).toMatchObject(path === '' ? { name: 'spillway', extensions: [] } : {})
  })

  it('describes its models, and those of the server behind', async () => {
    expect(await (await get('/models/team/rank')).json()).toEqual({
      name: 'team/rank',
      versions: ['1'],
      platform: 'spillway_simulated',
      inputs: [
        { name: 'query', datatype: 'BYTES', shape: [1] },
        { name: 'documents', datatype: 'BYTES', shape: [-1] },
      ],
      outputs: [{ name: 'scores', datatype: 'FP32', shape: [-1] }],
    })
    expect(await (await get('/models/far')).json()).toMatchObject({
      name: 'far',
      platform: 'ensemble',
      inputs: [{ name: 'text_input' }],
    })
  })

  it('says which models are ready', async () => {
    for (const path of ['/models/see/ready', '/models/team/rank/versions/1/ready']) {
      const response = await get(path)
      expect(response.status).toBe(200)
      expect(await response.json()).toMatchObject({ ready: true })
    }
  })
})

describe('infer', () => {
  it('ranks documents by how alike they are to the query', async () => {
    const documents = texts(
      'documents',
      'Invoices are due.',
      'A weir holds water.',
      'Weirs hold back the water of rivers.',
    )
    const response = await infer('team/rank', {
      id: 'mine',
      inputs: [texts('query', 'What does a weir hold?'), documents],
    })
    expect(response.status).toBe(200)
    const answer = (await response.json()) as Answer
    expect(answer).toMatchObject({ model_name: 'team/rank', id: 'mine', outputs: [{ name: 'scores', shape: [3] }] })
    const [invoice, weir, weirs] = answer.outputs[0]!.data as number[]
    expect(weir).toBeGreaterThan(weirs!)
    expect(weirs).toBeGreaterThan(invoice! + 0.1)
    const settled = await platform.settled(response.headers.get('x-request-id')!)
    expect(settled).toMatchObject({ outcome: 'completed', model: 'team/rank', usage: { outputTokens: 0 } })
    expect(settled.usage.promptTokens).toBeGreaterThan(10)
  })

  it('looks at images, costs what they are large, and gives the outputs that are wanted', async () => {
    const image = (size: number, r: number, g: number, b: number) =>
      [r, g, b].flatMap((value) => Array.from({ length: size * size }, () => value))
    const data = [...image(32, 200, 10, 10), ...image(32, 250, 250, 250), ...image(32, 1, 1, 2)]
    const inputs = [{ name: 'image', datatype: 'UINT8', shape: [3, 3, 32, 32], data }]
    const response = await infer('see', { inputs, outputs: [{ name: 'label' }] })
    const { outputs } = (await response.json()) as Answer
    expect(outputs).toMatchObject([{ name: 'label', shape: [3], data: ['red', 'bright', 'dark'] }])
    const settled = await platform.settled(response.headers.get('x-request-id')!)
    // 3,072 numbers an image are four patches.
    expect(settled.usage.promptTokens).toBe(12)
  })

  it('takes nested data, and makes vectors in tensors too', async () => {
    const inputs = [{ name: 'text', datatype: 'BYTES', shape: [2, 1], data: [['a weir'], ['a dam']] }]
    const { outputs } = (await (await infer('embed', { inputs })).json()) as Answer
    expect(outputs).toMatchObject([{ name: 'embedding', shape: [2, 768] }])
    expect(outputs[0]!.data).toHaveLength(2 * 768)
  })

  it('passes tensors to the server behind, and its answer back', async () => {
    const inputs = [{ name: 'x', datatype: 'FP32', shape: [1, 3], data: [1, 2, 3] }]
    const answer = (await (await infer('far', { inputs, id: 'seven' })).json()) as Answer
    expect(answer).toMatchObject({ model_name: 'far', id: 'seven', outputs: [{ name: 'y', data: [2, 4, 6] }] })
    const asked = triton.seen.find(({ path }) => path.endsWith('/infer'))!
    expect(JSON.parse(asked.body)).toMatchObject({ inputs })
  })
})

describe('what is wrong is named', () => {
  const good = texts('query', 'a')
  const bad = (more: object) => ({ inputs: [{ ...good, ...more }] })
  it.each([
    ['team/rank', {}, 400, 'inputs'],
    ['team/rank', { inputs: [] }, 400, 'inputs'],
    ['team/rank', bad({ shape: [2] }), 400, 'inputs[0].data'],
    ['team/rank', bad({ data: [1] }), 400, 'inputs[0].data'],
    ['team/rank', bad({ datatype: 'TEXT' }), 400, 'inputs[0].datatype'],
    ['team/rank', bad({ shape: [-1] }), 400, 'inputs[0].shape'],
    ['team/rank', bad({ name: 7 }), 400, 'inputs[0].name'],
    ['team/rank', { inputs: [good] }, 400, 'documents'],
    ['team/rank', { inputs: [good, texts('documents', 'long '.repeat(500))] }, 400, 'inputs'],
    ['see', { inputs: [{ name: 'image', datatype: 'FP32', shape: [3], data: [1, 2, 3] }] }, 400, 'image'],
    ['see', { inputs: [{ name: 'image', datatype: 'INT8', shape: [1], data: [1.5] }] }, 400, 'inputs[0].data'],
    [MODEL, { inputs: [good] }, 400, 'model'],
    ['texts', { inputs: [good] }, 400, 'model'],
    ['nobody', { inputs: [good] }, 404, 'nobody'],
    ['see/versions/9', { inputs: [good] }, 404, '9'],
  ])('%s %#', async (model, body, status, named) => {
    const response = await infer(model, body)
    const { error } = (await response.json()) as { error: string }
    expect(response.status).toBe(status)
    expect(error).toContain(named)
  })

  it('in the protocol’s shape for keys, URLs, bodies and unknown models too', async () => {
    const strangers = await postJson(`${root}/models/see/infer`, {}, { authorization: 'Bearer x' })
    expect(strangers.status).toBe(401)
    expect(await strangers.json()).toEqual({ error: expect.any(String) })
    const noJson = await postJson(`${root}/models/see/infer`, '{')
    expect(noJson.status).toBe(400)
    expect(await noJson.json()).toEqual({ error: expect.stringContaining('JSON') })
    const binary = await postJson(`${root}/models/see/infer`, 'x', { 'content-type': 'application/octet-stream' })
    expect(binary.status).toBe(415)
    expect((await postJson(`${root}/models/see/explain`, {})).status).toBe(404)
    expect((await get('/models/nobody')).status).toBe(404)
  })
})
