import { authenticate, type KeyDirectory } from '../authenticate.ts'
import type { Route } from '../http-server.ts'
import type { KnownModel, ModelDirectory } from '../model-directory.ts'

/** GET /v1/models: what can be asked for, aliases included, in OpenAI's list shape. */
export function modelRoutes(models: ModelDirectory, keys: KeyDirectory): Route[] {
  const list = JSON.stringify({ object: 'list', data: models.list().flatMap(describe) })
  return [
    {
      method: 'GET',
      path: '/v1/models',
      handle(exchange) {
        if (authenticate(keys, exchange.req.headers.authorization) === undefined) {
          const because = 'No valid API key was sent.'
          exchange.sendRefusal({ code: 'invalid-api-key', because, blame: 'request', retryAfterUs: undefined })
        } else exchange.sendJson(200, list)
      },
    },
  ]
}

function describe({ model }: KnownModel): object[] {
  const row = (id: string) => ({ id, object: 'model', created: model.createdAtS, owned_by: 'spillway' })
  return [row(model.name), ...model.aliases.map(row)]
}
