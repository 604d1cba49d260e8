import {
  authenticate,
  type Caller,
  type CallerCall,
  type CallerDenial,
  identify,
  type KeyDirectory,
  type PeerDirectory,
} from './authenticate.ts'
import type { KeyCode, ToldRefusal } from './error-table.ts'
import type { Exchange } from './exchange.ts'

/**
 * Who calls, and may this key make this call? Every route that takes a tenant's key asks here, before the body is read,
 * so that none forgets what the key's terms say of addresses and routes; it asks again when model and band are known
 * (`refuseCall`). Keys of the configuration file have no terms of their own and may.
 *
 * A call without a route asks no model (the story of a request): only the address counts.
 */
export type AskedCall = Omit<CallerCall, 'clientAddress'>

/** The caller; undefined after the refusal was sent. */
export function callerFor(exchange: Exchange, keys: KeyDirectory, call: AskedCall): Caller | undefined {
  return admitted(exchange, exchange.knownCaller ?? authenticate(keys, exchange), call)
}

/** The caller behind a session of the console, as its key is now; undefined when it opens nothing. */
export function sessionCaller(exchange: Exchange, keys: KeyDirectory, sessionDigest: string): Caller | undefined {
  const caller = authenticate(keys, { req: exchange.req, visit: exchange.visit, sessionDigest })
  if ('code' in caller || denialOf(exchange, caller, {}) !== undefined) return undefined
  return caller
}

/** The same, also for another region's gateway that acts for a tenant. */
export function callerOrPeerFor(
  exchange: Exchange,
  keys: KeyDirectory & PeerDirectory,
  call: AskedCall,
): Caller | undefined {
  return admitted(exchange, exchange.knownCaller ?? identify(keys, exchange), call)
}

/** Sends the refusal and answers true when the key may not. */
export function refuseCall(exchange: Exchange, caller: Caller, call: AskedCall): boolean {
  return admitted(exchange, caller, call) === undefined
}

function admitted(exchange: Exchange, caller: Caller | ToldRefusal<KeyCode>, call: AskedCall): Caller | undefined {
  if ('code' in caller) {
    exchange.sendRefusal(caller)
    return undefined
  }
  const denied = denialOf(exchange, caller, call)
  if (denied === undefined) return caller
  exchange.sendRefusal({
    code: 'key-not-allowed',
    because: BECAUSE[denied](call, caller.key.id),
    blame: 'request',
    retryAfterUs: undefined,
    detail: { terms: denied },
    ...(denied === 'models' && { param: 'model' }),
  })
  return undefined
}

/** The part of the key's terms that forbids the call. */
export function denialOf(exchange: Exchange, { denial }: Caller, call: AskedCall): CallerDenial | undefined {
  return denial?.({ ...call, clientAddress: () => exchange.clientAddress })
}

const BECAUSE: Readonly<Record<CallerDenial, (call: AskedCall, keyId: string) => string>> = {
  clientRanges: (_, id) => `the key ${id} may not be used from this address`,
  canInfer: (_, id) => `the key ${id} may not ask models`,
  routes: ({ route }, id) => `the key ${id} may not use the route ${route}`,
  models: ({ model }, id) => `the key ${id} may not use the model ${model}`,
  bands: ({ band }, id) => `the key ${id} may not use the band ${band}`,
}
