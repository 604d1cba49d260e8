import { expect, it } from 'vitest'
import { RecordingSink } from '../../test/support/virtual-world.ts'
import { NO_USAGE } from '../domain/delta.ts'
import { responsesWording } from '../wire/responses-dialect.ts'
import { StoredApartSink } from './stored-apart-sink.ts'

const identity = { kind: 'chat', id: 'resp_1', createdAtS: 1, model: 'm', includesUsage: false } as const

it('a response is stored with placeholders, with the ids that its client saw, and only when it finishes', () => {
  const kept: string[] = []
  const checked = responsesWording(
    { model: 'm', input: 'Hi' },
    { isStored: true, keep: (_, document) => void kept.push(document) },
  )
  if (checked.kind !== 'ok') throw new Error('the body is good')
  const { apart } = checked.value
  const client = apart!.stream(identity)
  const sent: string[] = []
  const sink = new RecordingSink()
  sink.onWrite = ({ choices = [] }) => void sent.push(client.chunk(choices))
  const choice = (content: string) => [{ index: 0, content, finishReason: null }]
  const stored = new StoredApartSink(sink, apart!.store(identity))
  void stored.write({ tokens: 1, choices: choice('to ada@x.org'), kept: choice('to <EMAIL_3f>') })
  void stored.write({ tokens: 1, choices: choice('.') })
  sent.push(client.end(NO_USAGE))
  expect(kept).toEqual([])
  stored.finish(NO_USAGE)
  expect(kept).toHaveLength(1)
  const [item] = (JSON.parse(kept[0]!) as { output: { id: string; content: { text: string }[] }[] }).output
  expect(item?.content[0]?.text).toBe('to <EMAIL_3f>.')
  expect(sent.join('')).toContain('to ada@x.org')
  expect(sent.join('')).toContain(item!.id)
  new StoredApartSink(sink, apart!.store(identity)).fail({
    code: 'replica-lost',
    because: '',
    blame: 'platform',
    retryAfterUs: 0,
  })
  expect(kept).toHaveLength(1)
})
