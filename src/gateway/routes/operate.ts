import type { KeyCode, ToldRefusal } from '../error-table.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'

/**
 * Routes for operators and their machines: liveness, readiness, metrics. `/health` answers as long as the process can
 * answer at all; `/health/ready` answers no while starting, while draining, and while no replica is ready.
 */
export interface OperateDeps {
  readonly readiness: () => { readonly isReady: boolean; readonly because: string }
  readonly openApi: string
}

const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export function operateRoutes(deps: OperateDeps): Route[] {
  return [
    // Clients ask for the root to see whether anybody is there.
    {
      method: 'GET',
      path: '/',
      handle: (exchange) => exchange.sendJson(200, '{"service":"spillway","api":"/openapi.json"}'),
    },
    {
      method: 'GET',
      path: '/health',
      isUnmetered: true,
      handle: (exchange) => exchange.sendJson(200, '{"status":"ok"}'),
    },
    {
      method: 'GET',
      path: '/health/ready',
      isUnmetered: true,
      handle(exchange) {
        const { isReady, because } = deps.readiness()
        const body = JSON.stringify({ status: isReady ? 'ready' : 'not-ready', because })
        exchange.sendJson(isReady ? 200 : 503, body)
      },
    },
    { method: 'GET', path: '/openapi.json', handle: (exchange) => exchange.sendJson(200, deps.openApi) },
  ]
}

/**
 * A route of its own, because metrics may have their own listener. They name tenants and their traffic: `refuse` says
 * why a request may not read them; without it everybody may.
 */
export function metricsRoute(
  text: () => string | Promise<string>,
  refuse?: (exchange: Exchange) => ToldRefusal<KeyCode> | undefined,
): Route {
  return {
    method: 'GET',
    path: '/metrics',
    async handle(exchange) {
      const refusal = refuse?.(exchange)
      if (refusal === undefined) exchange.send(200, METRICS_CONTENT_TYPE, await text())
      else exchange.sendRefusal(refusal)
    },
  }
}
