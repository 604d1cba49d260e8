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
    { method: 'GET', path: '/health', handle: (exchange) => exchange.sendJson(200, '{"status":"ok"}') },
    {
      method: 'GET',
      path: '/health/ready',
      handle(exchange) {
        const { isReady, because } = deps.readiness()
        const body = JSON.stringify({ status: isReady ? 'ready' : 'not-ready', because })
        exchange.sendJson(isReady ? 200 : 503, body)
      },
    },
    { method: 'GET', path: '/openapi.json', handle: (exchange) => exchange.sendJson(200, deps.openApi) },
  ]
}

/** A route of its own, because metrics may have their own listener. */
export function metricsRoute(text: () => string): Route {
  return { method: 'GET', path: '/metrics', handle: (exchange) => exchange.send(200, METRICS_CONTENT_TYPE, text()) }
}
