import type { ServerResponse } from 'node:http'
import { pause } from './eventually.ts'
import { type Asked, json, type Reply, ScriptedServer, text } from './scripted-server.ts'

/** A server of the Open Inference Protocol with Triton's extension, scripted. */
export const TRITON_MODEL = 'ensemble'

export interface TritonScript {
  readonly words?: readonly string[]
  readonly everyMs?: number
  readonly refuses?: { readonly status: number; readonly body: unknown }
  readonly breaksAfter?: number
  readonly isReady?: boolean
  /** Whether it counts tokens, as its vLLM backend does when asked. */
  readonly counts?: boolean
}

const WORDS = ['A ', 'weir ', 'is ', 'a ', 'low ', 'däm.']

export function startTriton(script: TritonScript = {}): Promise<ScriptedServer> {
  const { words = WORDS, everyMs = 1, breaksAfter = Number.POSITIVE_INFINITY, counts = true, isReady = true } = script
  const body = (said: string, tokens: number, isLast: boolean) => ({
    model_name: TRITON_MODEL,
    model_version: '1',
    text_output: said,
    ...(counts ? { num_input_tokens: 9, num_output_tokens: tokens, finish_reason: isLast ? 'stop' : 'None' } : {}),
  })
  const stream: Reply = async (_asked, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    for (const [i, word] of words.entries()) {
      if (i >= breaksAfter) {
        res.destroy()
        return
      }
      if (!(await say(res, body(word, 1, false), everyMs))) return
    }
    if (counts) await say(res, body('', 0, true), everyMs)
    res.end()
  }
  const whole: Reply = (asked, res) => json(body(words.join(''), words.length, true))(asked, res)
  const refused = (reply: Reply): Reply =>
    script.refuses === undefined ? reply : json(script.refuses.body, script.refuses.status)
  const path = `/v2/models/${TRITON_MODEL}`
  return ScriptedServer.start({
    [`GET ${path}/ready`]: isReady ? text('') : text('', 400),
    [`GET ${path}`]: json({
      name: TRITON_MODEL,
      versions: ['1'],
      platform: 'ensemble',
      inputs: [{ name: 'text_input', datatype: 'BYTES', shape: [1] }],
      outputs: [{ name: 'text_output', datatype: 'BYTES', shape: [-1] }],
    }),
    [`POST ${path}/generate`]: refused(whole),
    [`POST ${path}/generate_stream`]: refused(stream),
    [`POST ${path}/infer`]: refused(infer),
    'GET /metrics': text(`nv_inference_pending_request_count{model="${TRITON_MODEL}",version="1"} 4\n`),
  })
}

async function say(res: ServerResponse, body: object, everyMs: number): Promise<boolean> {
  if (res.destroyed) return false
  const isTaken = res.write(`data: ${JSON.stringify(body)}\n\n`)
  if (everyMs > 0) await pause(everyMs)
  if (!isTaken && !res.destroyed) await new Promise((resolve) => res.once('drain', resolve).once('close', resolve))
  return !res.destroyed
}

/** Doubles its first input. */
function infer(asked: Asked, res: ServerResponse): void {
  const { id, inputs } = JSON.parse(asked.body) as { id: string; inputs: Array<{ shape: number[]; data: number[] }> }
  const [input] = inputs
  const outputs = [{ name: 'y', datatype: 'FP32', shape: input?.shape, data: input?.data.map((x) => 2 * x) }]
  json({ model_name: TRITON_MODEL, model_version: '1', id, outputs })(asked, res) as undefined
}
