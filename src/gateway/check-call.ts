import type { Caller, CallerCall, CallerDenial } from './authenticate.ts'
import type { Exchange } from './exchange.ts'

/**
 * May this key make this call? Asked before the body is read, and again when model and band are known. Keys of the
 * configuration file have no terms of their own and may. Sends the refusal and answers true when the key may not.
 */
export function refuseCall(exchange: Exchange, caller: Caller, call: Omit<CallerCall, 'remoteAddress'>): boolean {
  if (caller.denial === undefined) return false
  const { remoteAddress } = exchange.req.socket
  const denied = caller.denial({ remoteAddress, ...call })
  if (denied === undefined) return false
  exchange.sendRefusal({
    code: 'key-not-allowed',
    because: BECAUSE[denied](call, caller.key.id),
    blame: 'request',
    retryAfterUs: undefined,
    detail: { terms: denied },
    ...(denied === 'models' && { param: 'model' }),
  })
  return true
}

const BECAUSE: Readonly<Record<CallerDenial, (call: Omit<CallerCall, 'remoteAddress'>, keyId: string) => string>> = {
  clientRanges: (_, id) => `the key ${id} may not be used from this address`,
  canInfer: (_, id) => `the key ${id} may not ask models`,
  routes: ({ route }, id) => `the key ${id} may not use the route ${route}`,
  models: ({ model }, id) => `the key ${id} may not use the model ${model}`,
  bands: ({ band }, id) => `the key ${id} may not use the band ${band}`,
}
