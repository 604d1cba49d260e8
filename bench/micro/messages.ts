/**
 * What does it cost to serve Anthropic's Messages by engines that speak chat completions?
 *
 * A body as Claude Code sends it (a system prompt of 20 kB in three blocks, 20 tools, 20 turns with tool calls and their
 * results) is checked and translated; a small one too. `JSON.parse` of the same bytes is timed beside and taken off, because every dialect
 * pays for it. A stream is written delta by delta: text, thinking, arguments of a tool call. The claims: at most 15 µs a
 * request and 1.5 µs a delta.
 *
 *   node bench/micro/messages.ts [--json]
 */
import type { ChoiceDelta } from '../../src/domain/delta.ts'
import { MESSAGES_DIALECT } from '../../src/wire/messages-dialect.ts'
import { MessagesStream } from '../../src/wire/messages-stream.ts'
import { CHAT_DIALECT } from '../../src/wire/openai-dialects.ts'
import { cpuUsOf, type Finding, tell } from './tell.ts'

const ROUNDS = 7
const text = (bytes: number): string => 'The spillway lets water pass the dam. '.repeat(bytes / 38)
const said = (bytes: number) => ({ type: 'text', text: text(bytes), cache_control: { type: 'ephemeral' } })

const small = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'What is a spillway for?' }] }

const turns = Array.from({ length: 10 }, (_, i) => [
  {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: text(400), signature: 'spillway.reasoning_content' },
      { type: 'text', text: text(200) },
      { type: 'tool_use', id: `toolu_${i}`, name: 'tool_1', input: { path: 'src/main.ts', lines: [1, 40] } },
    ],
  },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: `toolu_${i}`, content: text(1_500) }] },
]).flat()
const agent = {
  ...small,
  system: [{ type: 'text', text: 'x-anthropic-billing-header: cch=1;' }, said(2_000), said(18_000)],
  messages: [...small.messages, ...turns],
  tools: Array.from({ length: 20 }, (_, i) => ({
    name: `tool_${i}`,
    description: text(600),
    input_schema: { type: 'object', properties: { path: { type: 'string' }, lines: { type: 'array' } } },
  })),
  tool_choice: { type: 'auto' },
  thinking: { type: 'adaptive' },
  metadata: { user_id: 'user_1' },
  stream: true,
}

const median = (measure: () => number): number =>
  Array.from({ length: ROUNDS }, measure).toSorted((a, b) => a - b)[ROUNDS >> 1] as number

/** What reading costs beside the parsing of JSON, in microseconds. */
function translation(body: object, calls: number): number {
  const bytes = Buffer.from(JSON.stringify(body))
  const parse = (): void => void JSON.parse(bytes.toString('utf8'))
  const read = (): void => {
    if (MESSAGES_DIALECT.read(bytes).kind !== 'ok') throw new Error('the body is wrong')
  }
  cpuUsOf(calls, parse)
  cpuUsOf(calls, read)
  return median(() => cpuUsOf(calls, read) - cpuUsOf(calls, parse))
}

function chat(body: object, calls: number): number {
  const bytes = Buffer.from(JSON.stringify(body))
  const parse = (): void => void JSON.parse(bytes.toString('utf8'))
  const read = (): void => void CHAT_DIALECT.read(bytes)
  cpuUsOf(calls, read)
  return median(() => cpuUsOf(calls, read) - cpuUsOf(calls, parse))
}

/** The chat that a body is translated into. */
function asChat(body: object): object {
  const read = MESSAGES_DIALECT.read(Buffer.from(JSON.stringify(body)))
  if (read.kind === 'fault') throw new Error(read.fault.message)
  return read.value.body
}

const identity = { kind: 'chat' as const, id: 'msg_1', createdAtS: 0, model: 'm', includesUsage: false }
const delta = (over: Partial<ChoiceDelta>): readonly ChoiceDelta[] => [
  { index: 0, content: null, finishReason: null, ...over },
]
const DELTAS = {
  text: delta({ content: ' water' }),
  thinking: delta({ extra: { reasoning_content: ' water' } }),
  'tool arguments': delta({ extra: { tool_calls: [{ index: 0, function: { arguments: '{"a":' } }] } }),
}

/** A writer forgets what it has written: one stream may be as long as the measurement. */
function writing(choices: readonly ChoiceDelta[]): number {
  const writer = new MessagesStream(identity)
  writer.chunk(delta({ extra: { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '' } }] } }))
  // A letter of the end makes one string of the pieces, as writing to a socket does.
  const write = (): void => void writer.chunk(choices).charCodeAt(60)
  cpuUsOf(20_000, write)
  return median(() => cpuUsOf(100_000, write))
}

const ofAgent = translation(agent, 1_000)
const ofChat = chat(asChat(agent), 1_000)

const findings: Finding[] = [
  { name: 'small request, translated', value: translation(small, 20_000), unit: 'µs', below: 15 },
  { name: 'the same as a chat, for comparison', value: chat(small, 20_000), unit: 'µs' },
  { name: "an agent's request of 60 kB, translated", value: ofAgent, unit: 'µs' },
  { name: 'the same as a chat, for comparison', value: ofChat, unit: 'µs' },
  { name: 'what is paid for the other words', value: ofAgent - ofChat, unit: 'µs', below: 15 },
  ...Object.entries(DELTAS).map(([name, choices]) => ({
    name: `a delta of ${name}`,
    value: writing(choices),
    unit: 'µs',
    below: 1.5,
  })),
]
tell("Messages cost no more than a few microseconds beside a chat's own way", findings)
