import { afterEach, describe, expect, it } from 'vitest'
import { startTriton, TRITON_MODEL, type TritonScript } from '../../test/support/fake-triton.ts'
import { makeRequest } from '../../test/support/requests.ts'
import { json, type ScriptedServer, ScriptedServer as Server, text } from '../../test/support/scripted-server.ts'
import { Cancellation } from '../base/cancellation.ts'
import type { Delta } from '../domain/delta.ts'
import { FULL_RUNG } from '../domain/plan.ts'
import type { RequestKind } from '../domain/request.ts'
import type { Ending } from '../lifecycle/ports.ts'
import { HttpOipBackend, type HttpOipOptions } from './http-oip.ts'

const replica = { id: 'r-0', poolId: 'p', model: 'm', releaseId: 'm@1', region: 'local' }
let server: ScriptedServer
afterEach(() => server.close())

interface Asking {
  readonly script?: TritonScript
  readonly options?: Partial<HttpOipOptions>
  readonly body: Record<string, unknown>
  readonly isStreamed?: boolean
  readonly kind?: RequestKind
}

async function ask({ script, options, body, isStreamed = true, kind }: Asking) {
  server = await startTriton(script)
  const backend = new HttpOipBackend({ url: server.url, upstreamModel: TRITON_MODEL, ...options })
  const messages = body['messages'] as unknown[] | undefined
  const isChat = messages !== undefined
  const request = makeRequest({ text: { body }, isStreamed, kind: kind ?? (isChat ? 'chat' : 'completion') })
  const deltas: Delta[] = []
  const sink = {
    write: (delta: Delta): undefined => {
      deltas.push(delta)
    },
  }
  const estimate = { promptTokens: 1, cachedTokens: 0, outputTokens: 1, outputTokensHigh: 1, cost: 5, engineUs: 1 }
  const keptSegments = (messages ?? [0]).map((_, i) => i)
  const plan = {
    rung: FULL_RUNG,
    model: 'm',
    releaseId: 'm@1',
    segments: request.segments,
    keptSegments,
    outputTokensMax: 6,
    estimate,
  }
  const lease = { id: 1, ticketId: 'req_1', replica }
  const ending: Ending = await backend.generate({ lease, request, plan, sink, cancellation: new Cancellation() })
  await backend.close()
  const sent = JSON.parse(server.seen[0]?.body ?? '{}') as Record<string, unknown>
  const choices = deltas.flatMap((delta) => delta.choices ?? [])
  return {
    ending,
    deltas,
    sent,
    path: server.seen[0]?.path,
    said: choices.map(({ content }) => content).join(''),
    choices,
  }
}

describe('generate', () => {
  const chat = {
    messages: [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'A weir?' },
    ],
    stop: ['\n'],
    temperature: 0,
  }

  it('asks the vLLM backend in its words, and counts what it counts', async () => {
    const { ending, sent, path, said } = await ask({ body: chat })
    expect(path).toBe(`/v2/models/${TRITON_MODEL}/generate_stream`)
    expect(sent).toMatchObject({ text_input: 'system: Be brief.\nuser: A weir?\nassistant:', stream: true })
    expect(JSON.parse(sent['sampling_parameters'] as string)).toEqual({ max_tokens: 6, temperature: 0, stop: ['\n'] })
    expect(said).toBe('A weir is a low däm.')
    expect(ending).toEqual({ kind: 'finished', usage: { promptTokens: 9, cachedTokens: 0, outputTokens: 6 } })
  })

  it('asks TensorRT-LLM in its words, and ends where the stream closes', async () => {
    const style = { runtime: 'tensorrt-llm', template: 'chatml' } as const
    const { ending, sent, choices } = await ask({ body: chat, options: { style }, script: { counts: false } })
    expect(sent).toMatchObject({ max_tokens: 6, stop_words: ['\n'], bad_words: '' })
    expect(sent['text_input']).toMatch(/^<\|im_start\|>system\nBe brief.<\|im_end\|>\n.*assistant\n$/s)
    expect(ending).toEqual({ kind: 'finished', usage: undefined })
    expect(choices.at(-1)?.finishReason).toBe('length')
  })

  it('takes a version, a prompt, and a whole answer', async () => {
    server = await Server.start({
      'POST /v2/models/m/versions/3/generate': json({ text_output: ['hi'], num_input_tokens: [2] }),
    })
    const backend = new HttpOipBackend({ url: server.url, upstreamModel: 'm', version: '3' })
    const request = makeRequest({ text: { body: { prompt: 'Hello' } }, isStreamed: false, kind: 'completion' })
    const estimate = { promptTokens: 1, cachedTokens: 0, outputTokens: 1, outputTokensHigh: 1, cost: 5, engineUs: 1 }
    const plan = {
      rung: FULL_RUNG,
      model: 'm',
      releaseId: 'm@1',
      segments: [],
      keptSegments: [0],
      outputTokensMax: 6,
      estimate,
    }
    const lease = { id: 1, ticketId: 'req_1', replica }
    const sink = { write: (): undefined => undefined }
    const ending = await backend.generate({ lease, request, plan, sink, cancellation: new Cancellation() })
    await backend.close()
    expect(ending).toMatchObject({ kind: 'finished', usage: { promptTokens: 2, outputTokens: 1 } })
    expect(JSON.parse(server.seen[0]?.body ?? '')).toMatchObject({ text_input: 'Hello', stream: false })
  })

  it('understands an error in the middle', async () => {
    const { ending } = await ask({
      body: chat,
      script: { refuses: { status: 200, body: { error: 'CUDA out of memory' } } },
    })
    expect(ending.kind).toBe('lost')
  })
})

describe('infer', () => {
  const body = {
    inputs: [{ name: 'x', datatype: 'FP32', shape: [1, 3], data: [1, 2, 3] }],
    spillway: { bid: 1 },
  }

  it('passes tensors through, and its answer is one document', async () => {
    const { ending, sent, path, deltas } = await ask({ body, isStreamed: false, kind: 'tensors' })
    expect(path).toBe(`/v2/models/${TRITON_MODEL}/infer`)
    expect(sent).toEqual({ inputs: body.inputs, id: 'req_1' })
    expect(ending.kind).toBe('finished')
    const outputs = [{ name: 'y', datatype: 'FP32', shape: [1, 3], data: [2, 4, 6] }]
    expect(deltas).toEqual([{ tokens: 0, result: { kind: 'tensors', document: { model_version: '1', outputs } } }])
  })
})

describe('readiness and metadata', () => {
  const probe = async (routes: Parameters<typeof Server.start>[0], metricsPath?: string) => {
    server = await Server.start(routes)
    const metrics = metricsPath === undefined ? {} : { metricsUrl: server.url + metricsPath }
    const backend = new HttpOipBackend({ url: server.url, upstreamModel: 'm', ...metrics })
    const report = await backend.probe(replica)
    const metadata = await backend.metadata()
    await backend.close()
    return { ...report, metadata }
  }

  it.each([
    ['Triton', { 'GET /v2/models/m/ready': text('') }, true],
    ['Triton that loads', { 'GET /v2/models/m/ready': text('', 400) }, false],
    ['KServe', { 'GET /v2/models/m/ready': json({ name: 'm', ready: true }) }, true],
    ['KServe that loads', { 'GET /v2/models/m/ready': json({ name: 'm', ready: false }) }, false],
    ['TorchServe without the protocol', { 'GET /ping': json({ status: 'Healthy' }) }, true],
    ['nobody', {}, false],
  ])('%s', async (_, routes, isReady) => expect(await probe(routes)).toMatchObject({ isReady }))

  it('reads gauges and shapes', async () => {
    const routes = {
      'GET /v2/models/m/ready': text(''),
      'GET /v2/models/m': json({
        name: 'm',
        versions: [1],
        inputs: [{ name: 'x', datatype: 'FP32', shape: ['-1', 3] }],
      }),
      'GET /metrics': text('nv_inference_pending_request_count{model="m",version="1"} 4\n'),
    }
    expect(await probe(routes, '/metrics')).toMatchObject({
      waitingCount: 4,
      metadata: { name: 'm', versions: ['1'], inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 3] }], outputs: [] },
    })
  })
})
