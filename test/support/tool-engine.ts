import type { Behaviour, UpstreamCall } from './fake-upstream.ts'

/** A chat engine that thinks, calls a tool once, and answers with what the tool said. */
export interface ToolTurn {
  readonly reasoning?: string
  readonly name: string
  readonly arguments: string
}

interface Said {
  readonly delta: Record<string, unknown>
  readonly finishReason: string
}

export function callsTool(turn: ToolTurn): Behaviour {
  return (call) => {
    const { role, content } = (call.body['messages'] as { role: string; content: string }[]).at(-1) as Message
    if (role === 'tool') says(call, { delta: { content: `It says: ${content}` }, finishReason: 'stop' })
    else {
      const made = { id: 'call_up_1', type: 'function', function: { name: turn.name, arguments: turn.arguments } }
      const reasoning = turn.reasoning === undefined ? {} : { reasoning_content: turn.reasoning }
      says(call, { delta: { ...reasoning, tool_calls: [made] }, finishReason: 'tool_calls' })
    }
  }
}

/** Any delta of a chat, as a stream of one frame or as a whole answer. */
export function saysDelta(delta: Record<string, unknown>, finishReason = 'stop'): Behaviour {
  return (call) => says(call, { delta, finishReason })
}

interface Message {
  readonly role: string
  readonly content: string
}

const USAGE = {
  prompt_tokens: 20,
  completion_tokens: 8,
  total_tokens: 28,
  prompt_tokens_details: { cached_tokens: 5 },
  completion_tokens_details: { reasoning_tokens: 3 },
}

function says({ body, res }: UpstreamCall, { delta, finishReason }: Said): void {
  if (body['stream'] !== true) {
    const choices = [{ index: 0, message: { role: 'assistant', content: null, ...delta }, finish_reason: finishReason }]
    res
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ id: 'up-1', choices, usage: USAGE }))
    return
  }
  const frame = (value: object): string => `data: ${JSON.stringify({ id: 'up-1', ...value })}\n\n`
  res.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const part of partsOf(delta)) res.write(frame({ choices: [{ index: 0, delta: part, finish_reason: null }] }))
  res.write(frame({ choices: [{ index: 0, delta: {}, finish_reason: finishReason }] }))
  res.end(`${frame({ choices: [], usage: USAGE })}data: [DONE]\n\n`)
}

/** One frame per field; the arguments of a call in two. */
function partsOf({ tool_calls: calls, ...delta }: Record<string, unknown>): Record<string, unknown>[] {
  const parts = Object.entries(delta).map(([name, value]) => ({ [name]: value }))
  const called = (calls ?? []) as { id: string; type: string; function: { name: string; arguments: string } }[]
  return [
    ...parts,
    ...called.flatMap(({ id, type, function: { name, arguments: said } }, index) => {
      const half = Math.ceil(said.length / 2)
      const head = { index, id, type, function: { name, arguments: said.slice(0, half) } }
      return [{ tool_calls: [head] }, { tool_calls: [{ index, function: { arguments: said.slice(half) } }] }]
    }),
  ]
}
