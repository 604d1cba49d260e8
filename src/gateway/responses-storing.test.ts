import { describe, expect, it } from 'vitest'
import { type ArchivedAnswer, ArchiveUnavailable } from '../domain/archive.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { AnswerChain, AnswerDraft, Archive } from '../lifecycle/archive-ports.ts'
import { readStoredResponse } from './responses-storing.ts'

const TENANT = { id: 'acme' } as Tenant

const answer = (id: string, text: string): ArchivedAnswer => ({
  tenantId: 'acme',
  id,
  kind: 'response',
  createdAtMs: 1,
  expiresAtMs: 2,
  model: 'm',
  metadata: {},
  document: JSON.stringify({
    id,
    output: [{ id: `msg_${id.slice(5)}_0`, type: 'message', role: 'assistant', content: text }],
  }),
  input: JSON.stringify([{ id: `msg_${id.slice(5)}_in0`, role: 'user', content: `${text}?` }]),
})

function archiveOf(more: Partial<Archive> = {}): { archive: Archive; kept: AnswerDraft[] } {
  const kept: AnswerDraft[] = []
  const archive = { whyNot: () => undefined, keep: (_: Tenant, draft: AnswerDraft) => void kept.push(draft), ...more }
  return { archive: archive as unknown as Archive, kept }
}

const read = (archive: Archive, body: object) =>
  readStoredResponse(
    { archive, bodyBytesMax: 10_000 },
    TENANT,
    Buffer.from(JSON.stringify({ model: 'm', input: 'Hi.', ...body })),
  )

const chained = (state: AnswerChain['state']) =>
  archiveOf({ chain: () => Promise.resolve({ answers: [answer('resp_a', 'One')], state }) }).archive

describe('a body that goes on from a stored response', () => {
  it('has its conversation in front', async () => {
    const outcome = await read(chained('whole'), { previous_response_id: 'resp_a' })
    expect(outcome.kind === 'ok' && outcome.value.body).toMatchObject({
      messages: [
        { role: 'user', content: 'One?' },
        { role: 'assistant', content: 'One' },
        { role: 'user', content: 'Hi.' },
      ],
    })
  })

  it.each([
    ['more than a body may be', 'x'.repeat(6_000)],
    ['more complex than a body may be', JSON.parse(`${'['.repeat(200)}${']'.repeat(200)}`) as string],
  ])('is refused where the conversation is %s', async (_, text) => {
    const { archive } = archiveOf({
      chain: () => Promise.resolve({ answers: [answer('resp_a', text)], state: 'whole' }),
    })
    const fault = { code: 'previous-response-not-found', param: 'previous_response_id' }
    expect(await read(archive, { previous_response_id: 'resp_a' })).toMatchObject({ kind: 'fault', fault })
  })

  it('needs no words of its own', async () => {
    const outcome = await read(chained('whole'), { previous_response_id: 'resp_a', input: undefined })
    expect(outcome.kind).toBe('ok')
  })

  it.each(['broken', 'too-long'] as const)('is refused where the conversation is %s', async (state) => {
    const fault = { code: 'previous-response-not-found', param: 'previous_response_id' }
    expect(await read(chained(state), { previous_response_id: 'resp_a' })).toMatchObject({ kind: 'fault', fault })
  })

  it('is told to come back while the archive is away', async () => {
    const away = () => Promise.reject(new ArchiveUnavailable('the store is away'))
    const { archive } = archiveOf({ chain: away, find: away })
    const told = { kind: 'refusal', refusal: { code: 'archive-unavailable', blame: 'platform' } }
    expect(await read(archive, { previous_response_id: 'resp_a' })).toMatchObject(told)
    expect(await read(archive, { input: [{ type: 'item_reference', id: 'msg_a_0' }] })).toMatchObject(told)
    expect((await read(archive, {})).kind).toBe('ok')
  })
})

describe('items by their names', () => {
  const input = ['a', 'b', 'c'].flatMap((core) => ['0', 'in0'].map((n) => ({ id: `msg_${core}_${n}` })))

  it('are read once for each response, from its output and its input', async () => {
    const asked: string[] = []
    const { archive } = archiveOf({
      find: (_tenant, _kind, id) => {
        asked.push(id)
        return Promise.resolve(answer(id, id))
      },
    })
    const outcome = await read(archive, { input })
    expect(asked).toEqual(['resp_a', 'resp_b', 'resp_c'])
    expect(outcome.kind === 'ok' && outcome.value.body).toMatchObject({
      messages: [{ content: 'resp_a' }, { content: 'resp_a?' }, {}, {}, {}, { content: 'resp_c?' }],
    })
  })

  it('are refused when they are too much text', async () => {
    const asked: string[] = []
    const { archive } = archiveOf({
      find: (_tenant, _kind, id) => {
        asked.push(id)
        return Promise.resolve(answer(id, 'x'.repeat(4_000)))
      },
    })
    expect(await read(archive, { input })).toMatchObject({ kind: 'fault', fault: { param: 'input' } })
    expect(asked).toEqual(['resp_a', 'resp_b'])
  })
})

describe('an answer', () => {
  const identity = { kind: 'chat', id: 'resp_1', createdAtS: 1_800_000_000, model: 'm', includesUsage: false } as const
  const usage = { promptTokens: 1, cachedTokens: 0, outputTokens: 1 }
  const end = [{ index: 0, content: 'Hi.', finishReason: 'stop' }]

  it('is kept once, as it was told, with the items of its own turn', async () => {
    const { archive, kept } = archiveOf()
    const items = [
      { id: 'a', role: 'user', content: 'One' },
      { id: 'a', role: 'user', content: 'Two' },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '' },
    ]
    const outcome = await read(archive, { input: items, metadata: { a: 'b' } })
    if (outcome.kind !== 'ok') throw new Error('it was refused')
    const writer = outcome.value.stream(identity)
    const told = writer.chunk(end) + writer.end(usage)
    expect(kept).toHaveLength(1)
    expect(kept[0]).toMatchObject({
      id: 'resp_1',
      kind: 'response',
      createdAtMs: 1_800_000_000_000,
      metadata: { a: 'b' },
    })
    expect(told).toContain(kept[0]?.document)
    const ids = (JSON.parse(kept[0]?.input ?? '') as { id: string }[]).map(({ id }) => id)
    expect(ids).toEqual(['a', 'msg_1_in1', 'fc_1_in2'])
    expect(outcome.value.headers).toEqual(['x-spillway-stored', 'true'])
  })

  it('is not kept when it breaks off, or is not wanted', async () => {
    const { archive, kept } = archiveOf()
    const outcome = await read(archive, {})
    if (outcome.kind !== 'ok') throw new Error('it was refused')
    const writer = outcome.value.stream(identity)
    writer.chunk(end)
    writer.fail(JSON.stringify({ error: { message: 'm', type: 'server_error', code: null, param: null } }))
    const own = await read(archive, { store: false })
    if (own.kind !== 'ok') throw new Error('it was refused')
    const whole = own.value.whole(identity)
    whole.add(end)
    expect(whole.encode(usage)).toContain('"store":false')
    expect(kept).toEqual([])
  })

  it('says why it is not stored', async () => {
    const { archive } = archiveOf({ whyNot: () => 'queue-full' })
    const outcome = await read(archive, { store: true })
    expect(outcome.kind === 'ok' && outcome.value.headers).toEqual([
      'x-spillway-stored',
      'false',
      'x-spillway-not-stored',
      'queue-full',
    ])
  })
})
