import { invalidRequest } from '../../wire/openai-error.ts'
import type { Caller, KeyDirectory } from '../authenticate.ts'
import { callerFor, denialOf } from '../check-call.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import type { ModelDirectory } from '../model-directory.ts'

/** GET /v1/models and /v1/models/NAME: what can be asked for, aliases included, in OpenAI's shapes. */
export function modelRoutes(models: ModelDirectory, keys: KeyDirectory): Route[] {
  const rows = (exchange: Exchange, caller: Caller) =>
    models.list().flatMap(({ model }) => {
      if (denialOf(exchange, caller, { route: 'models', model: model.name }) === 'models') return []
      const row = (id: string) => ({ id, object: 'model', created: model.createdAtS, owned_by: 'spillway' })
      return [row(model.name), ...model.aliases.map(row)]
    })
  return [
    {
      method: 'GET',
      path: '/v1/models',
      handle(exchange) {
        const caller = callerFor(exchange, keys, { route: 'models' })
        if (caller !== undefined)
          exchange.sendJson(200, JSON.stringify({ object: 'list', data: rows(exchange, caller) }))
      },
    },
    {
      method: 'GET',
      path: '/v1/models/*',
      handle(exchange, rest) {
        const caller = callerFor(exchange, keys, { route: 'models' })
        if (caller === undefined) return
        const found = rows(exchange, caller).find((row) => row.id === rest)
        if (found !== undefined) exchange.sendJson(200, JSON.stringify(found))
        else exchange.sendFault(invalidRequest(`The model '${rest}' does not exist.`, 'model', 'model-not-found'))
      },
    },
  ]
}
