import { invalidRequest } from '../../wire/openai-error.ts'
import { authenticate, type KeyDirectory } from '../authenticate.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import type { ModelDirectory } from '../model-directory.ts'

/** GET /v1/models and /v1/models/NAME: what can be asked for, aliases included, in OpenAI's shapes. */
export function modelRoutes(models: ModelDirectory, keys: KeyDirectory): Route[] {
  const rows = () =>
    models.list().flatMap(({ model }) => {
      const row = (id: string) => ({ id, object: 'model', created: model.createdAtS, owned_by: 'spillway' })
      return [row(model.name), ...model.aliases.map(row)]
    })
  const isAllowed = (exchange: Exchange): boolean => {
    const caller = authenticate(keys, exchange)
    if (!('code' in caller)) return true
    exchange.sendRefusal(caller)
    return false
  }
  return [
    {
      method: 'GET',
      path: '/v1/models',
      handle(exchange) {
        if (isAllowed(exchange)) exchange.sendJson(200, JSON.stringify({ object: 'list', data: rows() }))
      },
    },
    {
      method: 'GET',
      path: '/v1/models/*',
      handle(exchange, rest) {
        if (!isAllowed(exchange)) return
        const found = rows().find((row) => row.id === rest)
        if (found !== undefined) exchange.sendJson(200, JSON.stringify(found))
        else exchange.sendFault(invalidRequest(`The model '${rest}' does not exist.`, 'model', 'model-not-found'))
      },
    },
  ]
}
