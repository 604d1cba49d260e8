import { deployedChat, deployedCompletion } from '../../wire/azure-dialects.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { embed } from './embeddings.ts'
import { type GenerateDeps, serveInDialect } from './generate.ts'

/**
 * Azure's addresses for OpenAI's routes. `/openai/deployments/NAME/…?api-version=…`: the deployment's name is a model or
 * one of its aliases, and any version will do. `/openai/v1/…` is the newer form, with the model in the body: the same
 * routes under another name; in between, Azure had responses and models at `/openai/…`. All end in the functions that
 * serve the usual addresses.
 */
export function azureRoutes(openAi: readonly Route[], deps: GenerateDeps): Route[] {
  return [
    {
      method: 'POST',
      path: '/openai/deployments/*',
      handle: (exchange, rest) => serveDeployment(deps, exchange, rest),
    },
    ...openAi.map((route) => ({ ...route, path: `/openai${route.path}` })),
    ...openAi
      .filter(({ path }) => WITHOUT_DEPLOYMENT.test(path))
      .map((route) => ({ ...route, path: route.path.replace('/v1/', '/openai/') })),
  ]
}

const WITHOUT_DEPLOYMENT = /^\/v1\/(responses|models)\b/

const OPERATIONS: Readonly<Record<string, (deps: GenerateDeps, exchange: Exchange, model: string) => Promise<void>>> = {
  '/chat/completions': (deps, exchange, model) => serveInDialect(deps, exchange, deployedChat(model)),
  '/completions': (deps, exchange, model) => serveInDialect(deps, exchange, deployedCompletion(model)),
  '/embeddings': (deps, exchange, model) => embed(deps, exchange, model),
}

function serveDeployment(deps: GenerateDeps, exchange: Exchange, rest: string): Promise<void> | void {
  for (const operation in OPERATIONS) {
    const model = rest.slice(0, -operation.length)
    // A chat's address ends in that of a completion: the longer one comes first.
    if (model !== '' && rest.endsWith(operation)) return OPERATIONS[operation]?.(deps, exchange, model)
  }
  const message = `Unknown operation of a deployment. There are: ${Object.keys(OPERATIONS).join(', ')}.`
  exchange.leaveUnread()
  exchange.sendFault(invalidRequest(message, null, 'unknown-url'))
}
