/**
 * What does it cost to answer in another dialect than the platform's own?
 *
 * Each row is a dialect with a body as its clients send it: a system prompt, six turns, a call with its output, three
 * tools. Timed is the way in (bytes → a chat body and its checks, without the parsing of JSON, which every dialect needs
 * and which is told beside), the head and end of a stream, and one delta of one word. Chat, which is not translated, is
 * the row to compare with. The claims: at most 15 µs for a request, head and end included, and at most 1.5 µs for a delta.
 *
 *   node bench/micro/dialects.ts [--json]
 */
import type { ChoiceDelta, Usage } from '../../src/domain/delta.ts'
import type { AnswerIdentity, Dialect } from '../../src/wire/dialect.ts'
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
]

const IDENTITY: Omit<AnswerIdentity, 'kind' | 'id'> = { createdAtS: 1_800_000_000, model: 'm', includesUsage: true }
const USAGE: Usage = { promptTokens: 400, cachedTokens: 100, outputTokens: 200 }
const WORD: readonly ChoiceDelta[] = [{ index: 0, content: ' spillway', finishReason: null }]
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
  const streamUs = cpuUsOf(CALLS / 50, () => {
    const writer = wording.stream(identity)
    for (let i = 0; i < WORDS_PER_ANSWER; i++) writer.chunk(WORD)
    void (writer.chunk(END) + writer.end(USAGE))
  })
  return { parseUs, requestUs: readUs - parseUs + frameUs, deltaUs: (streamUs - frameUs) / (WORDS_PER_ANSWER - 1) }
}

/** The median of the rounds: the machine is busy with other things, too. */
function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number
}

const findings: Finding[] = []
const rounds = new Map(ROWS.map((row) => [row.name, [] as ReturnType<typeof timesOf>[]]))
// Round by round, so that every row meets the same disturbances.
for (let round = 0; round < ROUNDS; round++) for (const row of ROWS) rounds.get(row.name)?.push(timesOf(row))
for (const [name, times] of rounds) {
  findings.push(
    { name: `${name}: parsing the JSON`, value: median(times.map(({ parseUs }) => parseUs)), unit: 'µs' },
    {
      name: `${name}: a request`,
      value: median(times.map(({ requestUs }) => requestUs)),
      unit: 'µs',
      below: REQUEST_US_MAX,
    },
    { name: `${name}: a delta`, value: median(times.map(({ deltaUs }) => deltaUs)), unit: 'µs', below: DELTA_US_MAX },
  )
}
tell('Another dialect costs at most 15 µs a request and 1.5 µs a delta.', findings)
