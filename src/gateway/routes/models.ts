import type { Model } from '../../domain/fleet.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { ANTHROPIC_ERRORS } from '../anthropic-errors.ts'
import type { Caller, KeyDirectory } from '../authenticate.ts'
import { callerFor, denialOf } from '../check-call.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import type { ModelDirectory } from '../model-directory.ts'

/**
 * GET /v1/models and /v1/models/NAME: what can be asked for, aliases included, in OpenAI's shapes. A client that sends
 * `anthropic-version` speaks Anthropic's interface, which has the same addresses and other shapes.
 */
export function modelRoutes(models: ModelDirectory, keys: KeyDirectory): Route[] {
  const list = (exchange: Exchange, caller: Caller): NamedModel[] =>
    models.list().flatMap(({ model }) => {
      if (denialOf(exchange, caller, { route: 'models', model: model.name }) === 'models') return []
      return [model.name, ...model.aliases].map((id) => ({ id, model }))
    })
  return [
    {
      method: 'GET',
      path: '/v1/models',
      handle(asked) {
        const { exchange, row, page } = wordsOf(asked)
        const caller = callerFor(exchange, keys, { route: 'models' })
        if (caller !== undefined) exchange.sendJson(200, JSON.stringify(page(list(exchange, caller).map(row))))
      },
    },
    {
      method: 'GET',
      path: '/v1/models/*',
      handle(asked, rest) {
        const { exchange, row } = wordsOf(asked)
        const caller = callerFor(exchange, keys, { route: 'models' })
        if (caller === undefined) return
        const found = list(exchange, caller).find(({ id }) => id === rest)
        if (found !== undefined) exchange.sendJson(200, JSON.stringify(row(found)))
        else exchange.sendFault(invalidRequest(`The model '${rest}' does not exist.`, 'model', 'model-not-found'))
      },
    },
  ]
}

interface NamedModel {
  readonly id: string
  readonly model: Model
}

type Row = { readonly id: string }

interface ModelWords {
  readonly exchange: Exchange
  readonly row: (named: NamedModel) => Row
  readonly page: (rows: readonly Row[]) => object
}

function wordsOf(exchange: Exchange): ModelWords {
  return exchange.req.headers['anthropic-version'] === undefined
    ? { exchange, row: openAiRow, page: (data) => ({ object: 'list', data }) }
    : { exchange: exchange.inWords(ANTHROPIC_ERRORS), row: anthropicRow, page: anthropicPage }
}

const openAiRow = ({ id, model }: NamedModel): Row =>
  ({ id, object: 'model', created: model.createdAtS, owned_by: 'spillway' }) as Row

const anthropicRow = ({ id, model }: NamedModel): Row => {
  const created_at = new Date(model.createdAtS * 1_000).toISOString()
  return { type: 'model', id, display_name: id, created_at } as Row
}

/** All models are on one page, whatever `limit` says: there are never many. */
const anthropicPage = (data: readonly Row[]): object => ({
  data,
  has_more: false,
  first_id: data[0]?.id ?? null,
  last_id: data.at(-1)?.id ?? null,
})
