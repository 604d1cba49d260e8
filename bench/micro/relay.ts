import { StreamEncoder, WholeAnswer } from '../../src/wire/answer.ts'
import type { AnswerIdentity } from '../../src/wire/dialect.ts'
import { readUpstream } from '../../src/wire/upstream.ts'
import { upstreamBody } from '../../src/wire/upstream-body.ts'
import { cpuUsOf, type Finding, tell } from './tell.ts'

/**
 * Claim: to pass an engine's answer on as it was written costs no more than to put it together anew from what is known of
 * it, and a request as it was written no more than one that is written anew.
 *
 * Both ways run side by side, in turns, and the quietest round of each counts. `node bench/micro/relay.ts`
 */
const ROUNDS = 15
const CALLS = 20_000

const identity: AnswerIdentity = {
  kind: 'chat',
  id: 'chatcmpl-7b209485eff759b636830de2',
  createdAtS: 1_700_000_000,
  model: 'gpt-4o',
  includesUsage: true,
}

const head =
  '{"id":"chatcmpl-C4HqHBe4xca0k0EzsCnf1t6V3YFXp","object":"chat.completion.chunk","created":1755137933,"model":"m"'
const STYLES: Readonly<Record<string, (content: string, i: number) => string>> = {
  vllm: (content) =>
    `${head},"choices":[{"index":0,"delta":{"content":${JSON.stringify(content)}},"logprobs":null,"finish_reason":null}]}`,
  'vllm, usage in every frame': (content, i) =>
    `${head},"choices":[{"index":0,"delta":{"content":${JSON.stringify(content)}},"logprobs":null,"finish_reason":null}],"usage":{"prompt_tokens":9,"total_tokens":${9 + i},"completion_tokens":${i}}}`,
  openai: (content, i) =>
    `${head},"service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":${JSON.stringify(content)}},"finish_reason":null}],"usage":null,"obfuscation":"${'x'.repeat(i % 16)}"}`,
  'llama.cpp': (content) =>
    `{"choices":[{"finish_reason":null,"index":0,"delta":{"content":${JSON.stringify(content)}}}],"created":1755137933,"id":"chatcmpl-C4HqHBe4xca0k0EzsCnf1t6V3YFXp","model":"m","system_fingerprint":"b1-1","object":"chat.completion.chunk"}`,
}

/** The quietest round of each way. */
function sideBySide(built: () => void, relayed: () => void): { builtUs: number; relayedUs: number } {
  let builtUs = Number.POSITIVE_INFINITY
  let relayedUs = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    builtUs = Math.min(builtUs, cpuUsOf(CALLS, built))
    relayedUs = Math.min(relayedUs, cpuUsOf(CALLS, relayed))
  }
  return { builtUs, relayedUs }
}

const findings: Finding[] = []
let sunk = 0

function compare(name: string, built: () => number, relayed: () => number): void {
  const { builtUs, relayedUs } = sideBySide(
    () => {
      sunk += built()
    },
    () => {
      sunk += relayed()
    },
  )
  findings.push({ name: `${name}: built anew`, value: builtUs, unit: 'µs' })
  findings.push({ name: `${name}: as it was written`, value: relayedUs, unit: 'µs' })
}

const words = ['The ', 'weir ', 'holds ', 'the ', 'water ', 'level', '.\n']
for (const [name, style] of Object.entries(STYLES)) {
  const frames = Array.from({ length: 64 }, (_, i) => style(words[i % words.length] as string, i + 1))
  const building = new StreamEncoder(identity)
  const relaying = new StreamEncoder(identity)
  let at = 0
  compare(
    `a frame of ${name}`,
    () => building.chunk(readUpstream(JSON.parse(frames[at++ & 63] as string)).choices).length,
    () => {
      const json = frames[at++ & 63] as string
      const { choices } = readUpstream(JSON.parse(json))
      return relaying.relay({ json, keepsModel: false }, choices).length
    },
  )
}

const usage = { promptTokens: 900, cachedTokens: 0, outputTokens: 200 }
const document = JSON.stringify({
  ...(JSON.parse(`${head}}`) as object),
  object: 'chat.completion',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'word '.repeat(200), refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { prompt_tokens: 900, completion_tokens: 200, total_tokens: 1_100 },
})
compare(
  'a whole answer of 1 kB',
  () => {
    const whole = new WholeAnswer(identity)
    whole.add(readUpstream(JSON.parse(document)).choices)
    return whole.encode(usage).length
  },
  () => {
    const whole = new WholeAnswer(identity)
    readUpstream(JSON.parse(document))
    const source = { json: document, keepsModel: false }
    whole.relay(source)
    return whole.encode({ ...usage, told: { ...usage, source, isAlone: false } }).length
  },
)

const messages = Array.from({ length: 9 }, (_, i) => ({
  role: i % 2 === 0 ? 'user' : 'assistant',
  content: 'word '.repeat(80),
}))
const body = {
  model: 'gpt-4o',
  messages,
  temperature: 0.7,
  max_tokens: 300,
  stream: true,
  stream_options: { include_usage: true },
}
const raw = JSON.stringify(body)
const plan = { keptSegments: messages.map((_, i) => i), outputTokensMax: 300, sentTokensMax: 300 }
type Asked = Parameters<typeof upstreamBody>
const asked = { kind: 'chat', isStreamed: true, text: { body, raw } } as unknown as Asked[0]
compare(
  'a request of 4 kB',
  () => JSON.stringify({ ...body, model: 'theirs' }).length,
  () => upstreamBody(asked, plan as unknown as Asked[1], 'theirs').length,
)

tell(
  `Answers and requests as they were written cost no more than built anew (${sunk > 0 ? 'all read' : ''}).`,
  findings,
)
