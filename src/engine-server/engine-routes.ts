import packageJson from '../../package.json' with { type: 'json' }
import { breathe } from '../assembly/live-backends.ts'
import { PromptReader } from '../backends/prompt-reader.ts'
import { piecesOf, spell } from '../backends/tokenizer.ts'
import { collectBody } from '../gateway/collect-body.ts'
import type { Exchange } from '../gateway/exchange.ts'
import type { Route } from '../gateway/http-server.ts'
import { metricsRoute } from '../gateway/routes/operate.ts'
import type { Checked } from '../wire/check.ts'
import type { ChatBody, CompletionBody } from '../wire/schemas.ts'
import {
  badRequest,
  readDetokenize,
  readTokenize,
  type TokenizeBody,
  vllmModelList,
  vllmNoSuchModel,
  vllmVersion,
} from '../wire/vllm.ts'
import type { EngineFacts } from './engine-served.ts'

/** The routes of vLLM's server beside generation: version, health, load, models and tokenizer. */
export function engineRoutes(engine: EngineFacts): Route[] {
  const models = vllmModelList(engine.model, engine.contextTokensMax, engine.createdAtS)
  const version = JSON.stringify({ version: vllmVersion(packageJson.version) })
  // vLLM answers these with an empty body.
  const isWell = (exchange: Exchange): void => exchange.send(200, 'text/plain', '')
  return [
    { method: 'GET', path: '/health', handle: isWell },
    { method: 'GET', path: '/ping', handle: isWell },
    { method: 'POST', path: '/ping', handle: isWell },
    { method: 'GET', path: '/version', handle: (exchange) => exchange.sendJson(200, version) },
    { method: 'GET', path: '/v1/models', handle: (exchange) => exchange.sendJson(200, models) },
    {
      method: 'GET',
      path: '/load',
      handle: (exchange) => exchange.sendJson(200, JSON.stringify({ server_load: engine.inFlight.size })),
    },
    metricsRoute(() => engine.metrics.text()),
    ...tokenizerRoutes(engine),
  ]
}

function tokenizerRoutes(engine: EngineFacts): Route[] {
  const { tokenizer } = engine.reader
  // A text to be counted may be longer than the context, unlike a prompt.
  const reader = new PromptReader({ tokenizer, tokensMax: Number.POSITIVE_INFINITY, breathe })
  return [
    {
      method: 'POST',
      path: '/tokenize',
      handle: (exchange) =>
        answer(engine, exchange, readTokenize, async (body) => {
          const tokens = await tokensOf(reader, body)
          const token_strs = body.return_token_strs === true ? piecesOf(tokenizer, tokens) : null
          return JSON.stringify({ count: tokens.length, max_model_len: engine.contextTokensMax, tokens, token_strs })
        }),
    },
    {
      method: 'POST',
      path: '/detokenize',
      handle: (exchange) =>
        answer(engine, exchange, readDetokenize, async ({ tokens }) => {
          const unknown = tokens.find((token) => !tokenizer.has(token))
          if (unknown !== undefined) return badRequest(`Token id ${unknown} is out of vocabulary.`, 'tokens')
          let prompt = ''
          for (const text of spell(tokenizer, tokens)) {
            prompt += text
            await breathe()
          }
          return JSON.stringify({ prompt })
        }),
    },
  ]
}

async function tokensOf(reader: PromptReader, body: TokenizeBody): Promise<number[]> {
  const read = await reader.read(body as ChatBody | CompletionBody)
  const wantsTail = !('add_generation_prompt' in body) || body.add_generation_prompt
  return [...read.fixed, ...read.segments.flatMap((segment) => segment.tokens), ...(wantsTail ? read.tail : [])]
}

/** The common steps of the small POST routes: collect, check, model, answer. */
async function answer<T extends { readonly model?: string | null }>(
  engine: EngineFacts,
  exchange: Exchange,
  read: (bytes: Buffer) => Checked<T>,
  respond: (body: T) => Promise<string | ReturnType<typeof badRequest>>,
): Promise<void> {
  const collected = await collectBody(exchange, engine.bodyBytesMax)
  if (collected.kind === 'gone') return
  const checked = collected.kind === 'fault' ? collected : read(collected.bytes)
  if (checked.kind === 'fault') {
    exchange.sendFault(checked.fault)
    return
  }
  const { model } = checked.value
  const response =
    typeof model === 'string' && model !== '' && model !== engine.model
      ? vllmNoSuchModel(model)
      : await respond(checked.value)
  if (typeof response === 'string') exchange.sendJson(200, response)
  else exchange.sendFault(response)
}
