import { Agent, request } from 'undici'
import type { Ask, Workload } from './workloads.ts'

/**
 * Sends a workload to an OpenAI-compatible URL and notes what a client sees of each request. It knows nothing of what is
 * behind the URL.
 */
export interface Seen {
  readonly ask: Ask
  readonly status: number
  readonly code: string
  readonly firstTokenS: number | undefined
  readonly totalS: number
  readonly tokens: number
  readonly rung: string
}

const TIMEOUT_MS = 150_000
const OUTPUT_TOKENS_MAX = 600

export async function play(
  { asks }: Workload,
  { url, model, keys }: { readonly url: string; readonly model: string; readonly keys: ReadonlyMap<string, string> },
): Promise<readonly Seen[]> {
  const dispatcher = new Agent({ connections: null, headersTimeout: TIMEOUT_MS, bodyTimeout: TIMEOUT_MS })
  const startedAt = performance.now()
  const open: Promise<Seen>[] = []
  for (const ask of asks) {
    const leftMs = ask.atS * 1_000 - (performance.now() - startedAt)
    if (leftMs > 0) await new Promise((resolve) => setTimeout(resolve, leftMs))
    open.push(send(ask, { url, model, key: keys.get(ask.tenant) ?? 'none', dispatcher }))
  }
  const seen = await Promise.all(open)
  await dispatcher.destroy()
  return seen
}

interface To {
  readonly url: string
  readonly model: string
  readonly key: string
  readonly dispatcher: Agent
}

/** One word is about one token. The engine under test writes as many words as the number behind `#out=`. */
const promptOf = ({ promptTokens, outputTokens }: Ask): string =>
  `${'the '.repeat(Math.max(0, promptTokens - 1))}#out=${outputTokens}`

async function send(ask: Ask, { url, model, key, dispatcher }: To): Promise<Seen> {
  const sentAt = performance.now()
  const since = (): number => (performance.now() - sentAt) / 1_000
  let firstTokenS: number | undefined
  let tokens = 0
  const ended = (status: number, code: string, rung = ''): Seen => ({
    ask,
    status,
    code,
    firstTokenS,
    totalS: since(),
    tokens,
    rung,
  })
  try {
    const answer = await request(`${url}/chat/completions`, {
      method: 'POST',
      dispatcher,
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({
        model,
        stream: true,
        max_tokens: OUTPUT_TOKENS_MAX,
        stream_options: { include_usage: true },
        messages: [{ role: 'user', content: promptOf(ask) }],
      }),
    })
    const rung = String(answer.headers['x-spillway-rung'] ?? '')
    if (answer.statusCode !== 200) {
      const body = (await answer.body.json()) as { error?: { code?: string } }
      return ended(answer.statusCode, body.error?.code ?? 'error', rung)
    }
    let code = ''
    let rest = ''
    for await (const chunk of answer.body) {
      const lines = (rest + String(chunk)).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (firstTokenS === undefined && line.includes('"content"')) firstTokenS = since()
        if (line.startsWith('data: {"error"')) code = 'broken-off'
        const usage = /"completion_tokens": ?(\d+)/.exec(line)
        if (usage !== null) tokens = Number(usage[1])
      }
    }
    return ended(200, code, rung)
  } catch (error) {
    return ended(0, error instanceof Error ? error.name : 'error')
  }
}
