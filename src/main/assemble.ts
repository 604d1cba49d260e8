import type { Clock } from '../base/clock.ts'
import { msToUs } from '../base/clock.ts'
import type { Config } from '../config/schema.ts'
import { toModels, toPools } from '../config/to-domain.ts'
import { Platform } from '../lifecycle/platform.ts'
import type { Backends, Journal } from '../lifecycle/ports.ts'
import { Turnstile } from '../lifecycle/turnstile.ts'
import { Dispatcher } from '../policy/dispatch/dispatcher.ts'

/**
 * Configuration → platform. The live server and the simulator both call this: they differ in the clock, the journal
 * and the backends that they bring, and in nothing else.
 */
export interface Parts {
  readonly clock: Clock
  readonly journal: Journal
  readonly backends: Backends
}

export function assemble(config: Config, parts: Parts): Platform {
  const setups = toPools(config)
  const limits = new Map(
    setups.flatMap(({ pool, concurrencyMax }) => pool.replicas.map((one) => [one.id, concurrencyMax])),
  )
  // One gateway alone holds all the room there is.
  const capacity = { allowance: (replica: { id: string }) => limits.get(replica.id) ?? 0 }
  const pools = setups.map(({ pool }) => pool)
  const dispatcher = new Dispatcher(pools, {
    queueMax: config.queue.requestsMax,
    concurrencyMaxOf: (replica) => capacity.allowance(replica),
  })
  return new Platform({
    world: { ...parts, capacity },
    turnstile: new Turnstile(parts.clock, dispatcher),
    models: toModels(config),
    pools,
    queueUsMax: msToUs(config.queue.waitMsMax),
  })
}
