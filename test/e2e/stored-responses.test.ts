import { createOpenAI } from '@ai-sdk/openai'
import { generateText, isStepCount, jsonSchema, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { hashKey } from '../../src/config/key-hash.ts'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import { checkedResponse, readEvents } from '../support/responses-shapes.ts'
import {
  ACME_KEY,
  authorization,
  GLOBEX_KEY,
  MODEL,
  postJson,
  startPlatform,
  type TestPlatform,
  upstreamTree,
} from '../support/start-platform.ts'
import { callsTool, saysDelta } from '../support/tool-engine.ts'

/** Responses that are stored, and conversations that go on from them. acme and globex may store, initech may not. */

const INITECH_KEY = 'sk-test-initech'

let upstream: FakeUpstream
let platform: TestPlatform
const clientOf = (apiKey: string) => new OpenAI({ baseURL: platform.baseURL, apiKey, maxRetries: 0 })
let acme: OpenAI

beforeAll(async () => {
  upstream = await FakeUpstream.start()
  const tenants = [
    { id: 'acme', slo: 'patient', storing: {}, keys: [{ id: 'acme-1', hash: hashKey(ACME_KEY) }] },
    { id: 'globex', slo: 'patient', storing: {}, keys: [{ id: 'globex-1', hash: hashKey(GLOBEX_KEY) }] },
    { id: 'initech', slo: 'patient', keys: [{ id: 'initech-1', hash: hashKey(INITECH_KEY) }] },
  ]
  platform = await startPlatform(upstreamTree([upstream.url], { tenants }))
  acme = clientOf(ACME_KEY)
})
afterAll(async () => {
  await platform.close()
  await upstream.close()
})
beforeEach(() => {
  upstream.behaviour = answers()
  upstream.seen.length = 0
})

const saidToEngine = (): unknown => upstream.seen.at(-1)?.body['messages']

describe('a stored response', () => {
  it('is there with the next request, as it was answered, whole and streamed', async () => {
    const { output_text: _sdk, ...whole } = await acme.responses.create({
      model: MODEL,
      input: 'Hi.',
      instructions: 'Be brief.',
      metadata: { run: '7' },
    })
    expect(checkedResponse(whole).store).toBe(true)
    const { output_text: _text, ...found } = await acme.responses.retrieve(whole.id)
    expect(found).toEqual(whole)
    const reply = await postJson(`${platform.baseURL}/responses`, { model: MODEL, input: 'Hi.', stream: true })
    expect(reply.headers.get('x-spillway-stored')).toBe('true')
    const last = readEvents(await reply.text()).at(-1)?.response
    const { output_text: _again, ...streamed } = await acme.responses.retrieve(last?.id as string)
    expect(streamed).toEqual(last)
  })

  it('has the items that it answered, page by page', async () => {
    const image = { type: 'input_image' as const, image_url: 'data:image/png;base64,AA==', detail: 'auto' as const }
    const { id } = await acme.responses.create({
      model: MODEL,
      input: [
        { role: 'user', content: 'One.' },
        { role: 'assistant', content: 'Two.' },
        { role: 'user', content: [{ type: 'input_text', text: 'Three.' }, image] },
      ],
    })
    const all = []
    for await (const item of acme.responses.inputItems.list(id, { limit: 2, order: 'asc' })) all.push(item)
    expect(all).toMatchObject([
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'One.' }] },
      { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Two.' }] },
      { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Three.' }, image] },
    ])
    expect(new Set(all.map((item) => item.id)).size).toBe(3)
    const newest = await acme.responses.inputItems.list(id, { limit: 1 })
    expect(newest).toMatchObject({ has_more: true, data: [{ id: all[2]?.id }] })
    await expect(acme.responses.inputItems.list(id, { after: 'msg_none' })).rejects.toMatchObject({ status: 404 })
  })

  it('can be deleted, and not cancelled or streamed', async () => {
    const { id } = await acme.responses.create({ model: MODEL, input: 'Hi.' })
    await expect(acme.responses.cancel(id)).rejects.toMatchObject({ status: 400 })
    await expect(acme.responses.retrieve(id, { stream: true })).rejects.toMatchObject({ status: 400, param: 'stream' })
    const deleted = await fetch(`${platform.baseURL}/responses/${id}`, { method: 'DELETE', headers: authorization() })
    expect(await deleted.json()).toEqual({ id, object: 'response', deleted: true })
    for (const call of [acme.responses.retrieve(id), acme.responses.delete(id), acme.responses.cancel(id)])
      await expect(call).rejects.toMatchObject({ status: 404, code: 'answer_not_found' })
    const below = await fetch(`${platform.baseURL}/responses/${id}/conversation`, { headers: authorization() })
    expect(below.status).toBe(404)
  })

  it('is of its tenant alone', async () => {
    const { id, output } = await acme.responses.create({ model: MODEL, input: 'A secret.' })
    const globex = clientOf(GLOBEX_KEY)
    for (const call of [
      globex.responses.retrieve(id),
      globex.responses.delete(id),
      globex.responses.inputItems.list(id),
    ])
      await expect(call).rejects.toMatchObject({ status: 404 })
    const next = globex.responses.create({ model: MODEL, input: 'Well?', previous_response_id: id })
    await expect(next).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' })
    const item = { type: 'item_reference' as const, id: output[0]?.id as string }
    const named = globex.responses.create({ model: MODEL, input: [item] })
    await expect(named).rejects.toMatchObject({ status: 400, param: 'input[0].id' })
    expect((await acme.responses.retrieve(id)).id).toBe(id)
  })

  it('has an id that nobody can invent', async () => {
    const odd = ['a%00b', '%F0%9F%8C%8A', '%', '..%2F..', 'x'.repeat(5_000), "'%20or%20true--"]
    for (const id of odd) {
      const reply = await fetch(`${platform.baseURL}/responses/${id}`, { headers: authorization() })
      expect([reply.status, id]).toEqual([id.includes('%00') ? 400 : 404, id])
    }
    for (const id of ['a\u0000b', '🌊', "' or true--"]) {
      const body = { model: MODEL, input: 'Hi.', previous_response_id: id }
      const reply = await postJson(`${platform.baseURL}/responses`, body)
      expect(reply.status).toBe(400)
    }
  })

  it('is in no journal', async () => {
    const text = 'the word of the day is thermocline'
    upstream.behaviour = saysDelta({ content: text })
    const { id } = await acme.responses.create({ model: MODEL, input: text })
    await acme.responses.retrieve(id)
    expect(JSON.stringify(platform.entries)).not.toContain('thermocline')
    expect(platform.printed).not.toContain('thermocline')
  })
})

describe('a response that is not stored', () => {
  it('says so, where the client or the tenant does not want it', async () => {
    const own = await acme.responses.create({ model: MODEL, input: 'Hi.', store: false })
    expect(own).toMatchObject({ store: false })
    await expect(acme.responses.retrieve(own.id)).rejects.toMatchObject({ status: 404 })
    const body = { model: MODEL, input: 'Hi.', store: true }
    const reply = await postJson(`${platform.baseURL}/responses`, body, authorization(INITECH_KEY))
    expect(reply.headers.get('x-spillway-not-stored')).toBe('not-allowed')
    const told = checkedResponse(await reply.json())
    expect(told.store).toBe(false)
    await expect(clientOf(INITECH_KEY).responses.retrieve(told.id)).rejects.toMatchObject({ status: 404 })
  })

  it('broke off', async () => {
    upstream.behaviour = answers({ breaksAfter: 2, everyMs: 5 })
    const reply = await postJson(`${platform.baseURL}/responses`, { model: MODEL, input: 'Hi.', stream: true })
    const failed = readEvents(await reply.text()).at(-1)
    expect(failed?.type).toBe('response.failed')
    await expect(acme.responses.retrieve(failed?.response?.id as string)).rejects.toMatchObject({ status: 404 })
  })
})

describe('a conversation', () => {
  it('goes on from a response, with all that came before but its instructions', async () => {
    upstream.behaviour = callsTool({ reasoning: 'I must look.', name: 'look', arguments: '{}' })
    const tools = [{ type: 'function' as const, name: 'look', parameters: { type: 'object' }, strict: false }]
    const first = await acme.responses.create({ model: MODEL, input: 'What is there?', instructions: 'Look.', tools })
    const call = first.output[1] as OpenAI.Responses.ResponseFunctionToolCall
    const second = await acme.responses.create({
      model: MODEL,
      previous_response_id: first.id,
      input: [{ type: 'function_call_output', call_id: call.call_id, output: 'a weir' }],
      tools,
    })
    expect(second.output_text).toBe('It says: a weir')
    expect(second.previous_response_id).toBe(first.id)
    upstream.behaviour = answers()
    const third = acme.responses.stream({ model: MODEL, previous_response_id: second.id, input: 'Thanks.' })
    await third.finalResponse()
    expect(saidToEngine()).toEqual([
      { role: 'user', content: 'What is there?' },
      {
        role: 'assistant',
        content: null,
        reasoning_content: 'I must look.',
        tool_calls: [{ id: 'call_up_1', type: 'function', function: { name: 'look', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'call_up_1', content: 'a weir' },
      { role: 'assistant', content: 'It says: a weir' },
      { role: 'user', content: 'Thanks.' },
    ])
  })

  it('does not go on from what is gone', async () => {
    const first = await acme.responses.create({ model: MODEL, input: 'One.' })
    const second = await acme.responses.create({ model: MODEL, input: 'Two.', previous_response_id: first.id })
    await acme.responses.delete(first.id)
    const refused = { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' }
    const third = acme.responses.create({ model: MODEL, input: 'Three.', previous_response_id: second.id })
    await expect(third).rejects.toMatchObject(refused)
    const never = acme.responses.create({ model: MODEL, input: 'Three.', previous_response_id: 'resp_never' })
    await expect(never).rejects.toMatchObject(refused)
  })

  it('takes items by their names, and not too many', async () => {
    const { output } = await acme.responses.create({ model: MODEL, input: 'One.' })
    const named = { type: 'item_reference' as const, id: output[0]?.id as string }
    await acme.responses.create({ model: MODEL, input: [named, { role: 'user', content: 'Two.' }] })
    expect(saidToEngine()).toEqual([
      { role: 'assistant', content: 'The weir holds the wäter lëvel 🌊.' },
      { role: 'user', content: 'Two.' },
    ])
    for (const id of ['msg_0_99', 'msg_none', 'rs_../../x_1', ''])
      await expect(acme.responses.create({ model: MODEL, input: [{ ...named, id }] })).rejects.toMatchObject({
        status: 400,
        param: 'input[0].id',
      })
    const many = Array.from({ length: 65 }, (_, n) => ({ ...named, id: `msg_${n}_0` }))
    await expect(acme.responses.create({ model: MODEL, input: many })).rejects.toMatchObject({
      status: 400,
      param: 'input',
    })
  })

  it.each(['generateText', 'streamText'])('of the AI SDK goes on as it does by default: %s', async (way) => {
    upstream.behaviour = callsTool({ reasoning: 'I must look.', name: 'look', arguments: '{"at":"dam"}' })
    const provider = createOpenAI({ baseURL: platform.baseURL, apiKey: ACME_KEY })
    const options = {
      model: provider(MODEL),
      prompt: 'What is there?',
      tools: {
        look: tool({
          inputSchema: jsonSchema<{ at: string }>({ type: 'object', properties: { at: { type: 'string' } } }),
          execute: ({ at }) => `a weir at the ${at}`,
        }),
      },
      stopWhen: isStepCount(3),
      maxRetries: 0,
    }
    const text = way === 'generateText' ? (await generateText(options)).text : await streamText(options).text
    expect(text).toContain('a weir at the dam')
    expect(saidToEngine()).toMatchObject([
      { role: 'user' },
      { role: 'assistant', reasoning_content: 'I must look.', tool_calls: [{ id: 'call_up_1' }] },
      { role: 'tool', tool_call_id: 'call_up_1' },
    ])
  })
})
