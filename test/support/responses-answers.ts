import type { ChoiceDelta, Usage } from '../../src/domain/delta.ts'
import type { AnswerIdentity, Wording } from '../../src/wire/dialect.ts'
import { RESPONSES_DIALECT } from '../../src/wire/responses-dialect.ts'
import { checkedResponse, readEvents, type ToldResponse } from './responses-shapes.ts'

/** Deltas of a chat, and the response that they become: streamed and whole, each in the shapes of the API. */
export const IDENTITY: AnswerIdentity = {
  kind: 'chat',
  id: 'resp_0123abcd',
  createdAtS: 1_800_000_000,
  model: 'gpt-4o-mini',
  includesUsage: false,
}
export const USAGE: Usage = { promptTokens: 11, cachedTokens: 4, outputTokens: 6 }

export function wordingOf(more: object = {}): Wording {
  const read = RESPONSES_DIALECT.read(Buffer.from(JSON.stringify({ model: 'gpt-4o-mini', input: 'Hi.', ...more })))
  if (read.kind === 'fault') throw new Error(read.fault.message)
  return read.value
}

export const says = (content: string | null, more: Partial<ChoiceDelta> = {}): ChoiceDelta[] => [
  { index: 0, content, finishReason: null, ...more },
]
export const also = (extra: Record<string, unknown>): ChoiceDelta[] => says(null, { extra })
export const ends = (finishReason = 'stop'): ChoiceDelta[] => says(null, { finishReason })
export const calls = (call: object): ChoiceDelta[] => also({ tool_calls: [call] })

export function streamed(deltas: readonly ChoiceDelta[][], more: object = {}) {
  const writer = wordingOf(more).stream(IDENTITY)
  const events = readEvents(deltas.map((delta) => writer.chunk(delta)).join('') + writer.end(USAGE))
  return { events, last: checkedResponse(events.at(-1)?.response) }
}

export function whole(deltas: readonly ChoiceDelta[][], more: object = {}): ToldResponse {
  const writer = wordingOf(more).whole(IDENTITY)
  for (const delta of deltas) writer.add(delta)
  return checkedResponse(JSON.parse(writer.encode(USAGE)))
}
