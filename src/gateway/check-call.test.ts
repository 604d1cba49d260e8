import { describe, expect, it } from 'vitest'
import { makeKey, makeTenant } from '../../test/support/demand.ts'
import type { Caller, CallerCall, KeyDirectory } from './authenticate.ts'
import { callerFor, refuseCall, sessionCaller } from './check-call.ts'
import { OPENAI_ERRORS } from './error-words.ts'
import { Exchange } from './exchange.ts'
import type { HttpRequest, HttpResponse } from './http-message.ts'

const OFFICE = '10.0.0.1'
const CALLER: Caller = { tenant: makeTenant('a'), key: makeKey('ka', 'a') }
/** The terms of a key that is for the office, one route and one model. */
const inTheOffice: Caller['denial'] = ({ clientAddress, route, model }: CallerCall) => {
  if (clientAddress() !== OFFICE) return 'clientRanges'
  if (route !== undefined && route !== 'chat') return 'routes'
  return model !== undefined && model !== 'm' ? 'models' : undefined
}

const directoryOf = (caller: Caller | undefined): KeyDirectory => ({
  byHash: () => caller,
  byIdentity: () => undefined,
})

/** A request from an address, and the refusals that it is sent. */
function from(remoteAddress: string): { exchange: Exchange; sent: unknown[] } {
  const sent: unknown[] = []
  const req = { headers: { authorization: 'Bearer sk' }, socket: { remoteAddress } } as unknown as HttpRequest
  const exchange = new Exchange(req, {} as HttpResponse, 'req_1', OPENAI_ERRORS)
  exchange.sendRefusal = (refusal) => void sent.push(refusal)
  return { exchange, sent }
}

describe('a session of the console', () => {
  const keys = directoryOf({ ...CALLER, denial: inTheOffice })

  it('opens what its key opens, from an address that the key may be used from', () => {
    expect(sessionCaller(from(OFFICE).exchange, keys, 'digest')).toMatchObject({ key: { id: 'ka' } })
  })

  it('opens nothing from an address that its key may not be used from', () => {
    expect(sessionCaller(from('192.0.2.7').exchange, keys, 'digest')).toBeUndefined()
  })

  it('opens nothing when its key is gone, and whatever it asks where the key has no terms', () => {
    expect(sessionCaller(from(OFFICE).exchange, directoryOf(undefined), 'digest')).toBeUndefined()
    expect(sessionCaller(from('192.0.2.7').exchange, directoryOf(CALLER), 'digest')).toBe(CALLER)
  })
})

describe('a call', () => {
  const keys = directoryOf({ ...CALLER, denial: inTheOffice })

  it('is made by the caller of its key when the key’s terms allow it', () => {
    const { exchange, sent } = from(OFFICE)
    expect(callerFor(exchange, keys, { route: 'chat' })).toMatchObject({ tenant: { id: 'a' } })
    expect(sent).toEqual([])
  })

  it('is refused with what forbids it', () => {
    const elsewhere = from('192.0.2.7')
    expect(callerFor(elsewhere.exchange, keys, { route: 'chat' })).toBeUndefined()
    expect(elsewhere.sent).toMatchObject([{ code: 'key-not-allowed', detail: { terms: 'clientRanges' } }])
    const other = from(OFFICE)
    expect(callerFor(other.exchange, keys, { route: 'files' })).toBeUndefined()
    expect(other.sent).toMatchObject([{ code: 'key-not-allowed', detail: { terms: 'routes' } }])
  })

  it('is refused once its model is known, if the key may not use it', () => {
    const { exchange, sent } = from(OFFICE)
    const caller = { ...CALLER, denial: inTheOffice }
    expect(refuseCall(exchange, caller, { route: 'chat', model: 'm' })).toBe(false)
    expect(refuseCall(exchange, caller, { route: 'chat', model: 'other' })).toBe(true)
    expect(sent).toMatchObject([{ code: 'key-not-allowed', param: 'model', detail: { terms: 'models' } }])
  })

  it('without a valid key is refused, and asks no terms', () => {
    const { exchange, sent } = from(OFFICE)
    expect(callerFor(exchange, directoryOf(undefined), { route: 'chat' })).toBeUndefined()
    expect(sent).toMatchObject([{ code: 'invalid-api-key' }])
  })
})
