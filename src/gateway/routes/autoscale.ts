import type { AutoscaleReported } from '../../domain/scale-entry.ts'
import type { KeyCode, ToldRefusal } from '../error-table.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'

/**
 * What should this pool's number of replicas follow? For KEDA's `metrics-api` and for people: plain numbers in JSON, of one
 * pool or of all. Whoever may read metrics may read these.
 */
export interface AutoscaleDeps {
  readonly readers: { refuse(exchange: Exchange): ToldRefusal<KeyCode> | undefined }
  readonly poolIds: () => readonly string[]
  readonly signalsOf: (poolId: string) => AutoscaleReported | undefined
}

export function autoscaleRoutes({ readers, poolIds, signalsOf }: AutoscaleDeps): Route[] {
  const told = (poolId: string) => {
    const signals = signalsOf(poolId)
    return signals && toNumbers(signals)
  }
  return [
    {
      method: 'GET',
      path: '/autoscale',
      handle(exchange) {
        const refusal = readers.refuse(exchange)
        if (refusal !== undefined) return exchange.sendRefusal(refusal)
        const pools = poolIds()
          .map(told)
          .filter((numbers) => numbers !== undefined)
        exchange.sendJson(200, JSON.stringify({ pools }))
      },
    },
    {
      method: 'GET',
      path: '/autoscale/*',
      handle(exchange, poolId) {
        const refusal = readers.refuse(exchange)
        if (refusal !== undefined) return exchange.sendRefusal(refusal)
        const numbers = told(poolId)
        if (numbers !== undefined) return exchange.sendJson(200, JSON.stringify(numbers))
        exchange.sendRefusal({
          code: 'no-such-pool',
          because: `No pool of engines is called ${poolId}, or nothing has been seen of it yet. GET /autoscale lists them.`,
          blame: 'request',
          retryAfterUs: undefined,
        })
      },
    },
  ]
}

/** Numbers only, but for the name: what is not known is absent, never zero. */
function toNumbers(signals: AutoscaleReported): Readonly<Record<string, number | string>> {
  const { poolId, desired, readyCount, pendingCount, queuedCount, isActive, gpuUseRatio, kvUseRatio } = signals
  return {
    pool: poolId,
    desired,
    ready: readyCount,
    pending: pendingCount,
    demand: signals.demandPerUs * 1_000_000,
    backlogSeconds: signals.backlogUs / 1_000_000,
    queueDepth: queuedCount,
    sloAttainment: signals.attainmentRatio,
    activation: isActive ? 1 : 0,
    coldStartSeconds: signals.coldStartUs / 1_000_000,
    ...(gpuUseRatio !== undefined && { gpuUse: gpuUseRatio }),
    ...(kvUseRatio !== undefined && { kvUse: kvUseRatio }),
  }
}
