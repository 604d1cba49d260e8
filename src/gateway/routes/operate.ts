import { OPEN_METRICS_CONTENT_TYPE, toOpenMetrics, wantsOpenMetrics } from '../../base/open-metrics.ts'
import { histogramsIn, readExposition } from '../../base/read-exposition.ts'
import type { KeyCode, ToldRefusal } from '../error-table.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { StaticDocument } from '../static-document.ts'

/** Whether a process should get work, and why: an operator reads the reason. */
export interface ToldReadiness {
  readonly isReady: boolean
  /** Everybody may read it: no address, no name of a file, no user. */
  readonly because: string
}

/**
 * Routes for operators and their machines: liveness, readiness, metrics. `/health` answers as long as the process can
 * answer at all; `/health/ready` answers no while starting, while draining, and while no replica is ready.
 */
export interface OperateDeps {
  readonly readiness: () => ToldReadiness
  readonly openApi: string
}

const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export function operateRoutes(deps: OperateDeps): Route[] {
  const openApi = new StaticDocument('application/json', deps.openApi)
  return [
    // Clients ask for the root to see whether anybody is there.
    {
      method: 'GET',
      path: '/',
      handle: (exchange) => exchange.sendJson(200, '{"service":"spillway","api":"/openapi.json"}'),
    },
    healthRoute(),
    readyRoute(deps.readiness),
    { method: 'GET', path: '/openapi.json', handle: (exchange) => openApi.send(exchange) },
  ]
}

/** Liveness asks nothing of anybody else: a process whose database is away must not be restarted for it. */
export const healthRoute = (): Route => ({
  method: 'GET',
  path: '/health',
  isUnmetered: true,
  handle: (exchange) => exchange.sendJson(200, '{"status":"ok"}'),
})

export const readyRoute = (readiness: () => ToldReadiness | Promise<ToldReadiness>): Route => ({
  method: 'GET',
  path: '/health/ready',
  isUnmetered: true,
  async handle(exchange) {
    const { isReady, because } = await readiness()
    exchange.sendJson(isReady ? 200 : 503, JSON.stringify({ status: isReady ? 'ready' : 'not-ready', because }))
  },
})

/**
 * A route of its own, because metrics may have their own listener. They name tenants and their traffic: `refuse` says
 * why a request may not read them; without it everybody may.
 */
export function metricsRoute(
  text: (hasExemplars: boolean) => string | Promise<string>,
  refuse?: (exchange: Exchange) => ToldRefusal<KeyCode> | undefined,
): Route {
  return {
    method: 'GET',
    path: '/metrics',
    async handle(exchange) {
      const refusal = refuse?.(exchange)
      const { accept } = exchange.req.headers
      if (refusal !== undefined) exchange.sendRefusal(refusal)
      else if (wantsJson(accept)) exchange.sendJson(200, metricsJson(await text(false)))
      else if (wantsOpenMetrics(accept)) exchange.send(200, OPEN_METRICS_CONTENT_TYPE, toOpenMetrics(await text(true)))
      else exchange.send(200, METRICS_CONTENT_TYPE, await text(false))
    },
  }
}

/** Prometheus names text first; whoever names JSON and no text gets JSON. */
const wantsJson = (accept = ''): boolean => accept.includes('application/json') && !accept.includes('text/plain')

/** The same figures for readers without Prometheus: every series with its labels, histograms with their buckets. */
function metricsJson(text: string): string {
  const metrics = readExposition(text).map((family) => {
    const { name, kind, help, samples } = family
    const series =
      kind === 'histogram'
        ? histogramsIn(family)
        : samples.map(({ labels, value }) => ({ labels, value: finite(value) }))
    return { name, type: kind, help, series }
  })
  return JSON.stringify({ object: 'spillway.metrics', metrics })
}

/** JSON has no infinity. */
const finite = (value: number): number | null => (Number.isFinite(value) ? value : null)
