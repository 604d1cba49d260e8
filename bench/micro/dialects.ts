/**
 * What does it cost to answer in another dialect than the platform's own?
 *
 * Each row is a dialect with a body as its clients send it: a system prompt, six turns, a call with its output, three
 * tools. Timed is the way in (bytes → a chat body and its checks, without the parsing of JSON, which every dialect needs
 * and which is told beside), the head and end of a stream, and one delta: a word, a thought, a piece of a tool call's
 * arguments. Chat, which is not translated, is the row to compare with. The claims: at most 15 µs for a request, head and
 * end included, and at most 1.5 µs for a delta. A body as coding agents send it (60 kB: a long system prompt in blocks,
 * 20 tools, 20 turns with tool calls and results) may cost 15 µs more than the chat that it is translated into.
 *
 *   node bench/micro/dialects.ts [--json]
 */
import type { ChoiceDelta, Usage } from '../../src/domain/delta.ts'
import type { AnswerIdentity, Dialect } from '../../src/wire/dialect.ts'
import { MESSAGES_DIALECT } from '../../src/wire/messages-dialect.ts'
import { CHAT_DIALECT } from '../../src/wire/openai-dialects.ts'
import { readJson } from '../../src/wire/read-body.ts'
import { RESPONSES_DIALECT } from '../../src/wire/responses-dialect.ts'
import { cpuUsOf, type Finding, tell } from './tell.ts'

interface Row {
  readonly name: string
  readonly dialect: Dialect
  readonly body: object
}

const REQUEST_US_MAX = 15
const DELTA_US_MAX = 1.5
const CALLS = 20_000
const ROUNDS = 9

const SYSTEM = 'You answer questions about dams and rivers. You use the tools where they help. '.repeat(5)
const TURN = 'A spillway lets the water of a flood pass a dam without harm; it is sized for the largest flood. '.repeat(
  2,
)
const parameters = {
  type: 'object',
  properties: { place: { type: 'string', description: 'Where to look.' }, depth: { type: 'number' } },
  required: ['place'],
  additionalProperties: false,
}
const functions = ['look', 'measure', 'open_gate'].map((name) => ({
  name,
  description: 'Looks at a place.',
  parameters,
}))
const turns = ['user', 'assistant', 'user', 'assistant', 'user'] as const

const ROWS: readonly Row[] = [
  {
    name: 'chat',
    dialect: CHAT_DIALECT,
    body: {
      model: 'm',
      stream: true,
      max_tokens: 500,
      messages: [
        { role: 'system', content: SYSTEM },
        ...turns.map((role) => ({ role, content: TURN })),
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"place":"dam"}' } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'The water is at the brim.' },
      ],
      tools: functions.map((one) => ({ type: 'function', function: one })),
    },
  },
  {
    name: 'responses',
    dialect: RESPONSES_DIALECT,
    body: {
      model: 'm',
      stream: true,
      store: false,
      max_output_tokens: 500,
      instructions: SYSTEM,
      input: [
        ...turns.map((role) => ({
          type: 'message',
          role,
          content: [{ type: role === 'user' ? 'input_text' : 'output_text', text: TURN }],
        })),
        { type: 'function_call', call_id: 'c1', name: 'look', arguments: '{"place":"dam"}' },
        { type: 'function_call_output', call_id: 'c1', output: 'The water is at the brim.' },
      ],
      tools: functions.map((one) => ({ type: 'function', strict: true, ...one })),
    },
  },
  {
    name: 'messages',
    dialect: MESSAGES_DIALECT,
    body: {
      model: 'm',
      stream: true,
      max_tokens: 500,
      system: SYSTEM,
      messages: [
        ...turns.map((role) => ({ role, content: [{ type: 'text', text: TURN }] })),
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: { place: 'dam' } }] },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'The water is at the brim.' }],
        },
      ],
      tools: functions.map(({ name, description }) => ({ name, description, input_schema: parameters })),
    },
  },
]

const text = (bytes: number): string => 'The spillway lets water pass the dam. '.repeat(bytes / 38)
const said = (bytes: number) => ({ type: 'text', text: text(bytes), cache_control: { type: 'ephemeral' } })
const agentTurns = Array.from({ length: 10 }, (_, i) => [
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
const AGENT = {
  model: 'm',
  max_tokens: 100,
  system: [{ type: 'text', text: 'x-anthropic-billing-header: cch=1;' }, said(2_000), said(18_000)],
  messages: [{ role: 'user', content: 'What is a spillway for?' }, ...agentTurns],
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

const IDENTITY: Omit<AnswerIdentity, 'kind' | 'id'> = { createdAtS: 1_800_000_000, model: 'm', includesUsage: true }
const USAGE: Usage = { promptTokens: 400, cachedTokens: 100, outputTokens: 200 }
const delta = (over: Partial<ChoiceDelta>): readonly ChoiceDelta[] => [
  { index: 0, content: null, finishReason: null, ...over },
]
const WORD = delta({ content: ' spillway' })
const CALL = delta({ extra: { tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '' } }] } })
const DELTAS = {
  'a delta': WORD,
  'a delta of thinking': delta({ extra: { reasoning_content: ' spillway' } }),
  'a delta of tool arguments': delta({ extra: { tool_calls: [{ index: 0, function: { arguments: '{"a":' } }] } }),
}
type DeltaName = keyof typeof DELTAS
const DELTA_NAMES = Object.keys(DELTAS) as DeltaName[]
const END: readonly ChoiceDelta[] = [{ index: 0, content: null, finishReason: 'stop' }]
const WORDS_PER_ANSWER = 200

function timesOf({ dialect, body }: Row) {
  const bytes = Buffer.from(JSON.stringify(body))
  const identity = { ...IDENTITY, kind: dialect.kind, id: `${dialect.idPrefix}0123456789abcdef` }
  const read = dialect.read(bytes)
  if (read.kind === 'fault') throw new Error(read.fault.message)
  const wording = read.value
  const parseUs = cpuUsOf(CALLS, () => void readJson(bytes))
  const readUs = cpuUsOf(CALLS, () => void dialect.read(bytes))
  const frameUs = cpuUsOf(CALLS, () => {
    const writer = wording.stream(identity)
    void (writer.chunk(WORD) + writer.chunk(END) + writer.end(USAGE))
  })
  const deltaUs = (choices: readonly ChoiceDelta[]): number => {
    const streamUs = cpuUsOf(CALLS / 50, () => {
      const writer = wording.stream(identity)
      writer.chunk(choices === WORD ? WORD : CALL)
      // A letter of the end makes one string of the pieces, as writing to a socket does.
      for (let i = 1; i < WORDS_PER_ANSWER; i++) writer.chunk(choices).charCodeAt(60)
      void (writer.chunk(END) + writer.end(USAGE))
    })
    return (streamUs - frameUs) / (WORDS_PER_ANSWER - 1)
  }
  const deltas = Object.fromEntries(DELTA_NAMES.map((name) => [name, deltaUs(DELTAS[name])]))
  return { parseUs, requestUs: readUs - parseUs + frameUs, deltas: deltas as Record<DeltaName, number> }
}

/** What reading costs beside the parsing of JSON. */
function readingUs(dialect: Dialect, body: object): number {
  const bytes = Buffer.from(JSON.stringify(body))
  const read = cpuUsOf(CALLS / 20, () => void dialect.read(bytes))
  return read - cpuUsOf(CALLS / 20, () => void readJson(bytes))
}

/** What an agent's body costs more than the chat that it is translated into. */
function agentUs(): number {
  const read = MESSAGES_DIALECT.read(Buffer.from(JSON.stringify(AGENT)))
  if (read.kind === 'fault') throw new Error(read.fault.message)
  return readingUs(MESSAGES_DIALECT, AGENT) - readingUs(CHAT_DIALECT, read.value.body)
}

/** The median of the rounds: the machine is busy with other things, too. */
function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number
}

const findings: Finding[] = []
const rounds = new Map(ROWS.map((row) => [row.name, [] as ReturnType<typeof timesOf>[]]))
// Round by round, so that every row meets the same disturbances.
const agentRounds: number[] = []
for (let round = 0; round < ROUNDS; round++) {
  for (const row of ROWS) rounds.get(row.name)?.push(timesOf(row))
  agentRounds.push(agentUs())
}
for (const [name, times] of rounds) {
  findings.push(
    { name: `${name}: parsing the JSON`, value: median(times.map(({ parseUs }) => parseUs)), unit: 'µs' },
    {
      name: `${name}: a request`,
      value: median(times.map(({ requestUs }) => requestUs)),
      unit: 'µs',
      below: REQUEST_US_MAX,
    },
    ...DELTA_NAMES.map((kind) => ({
      name: `${name}: ${kind}`,
      value: median(times.map(({ deltas }) => deltas[kind])),
      unit: 'µs',
      below: DELTA_US_MAX,
    })),
  )
}
findings.push({
  name: 'messages: an agent’s request, more than its chat',
  value: median(agentRounds),
  unit: 'µs',
  below: REQUEST_US_MAX,
})
tell('Another dialect costs at most 15 µs a request and 1.5 µs a delta.', findings)
