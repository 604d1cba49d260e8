import { EventEmitter } from 'node:events'
import { describe, expect, it } from 'vitest'
import type { Clock } from '../base/clock.ts'
import { collectBody } from './collect-body.ts'
import type { Exchange } from './exchange.ts'

const BODY = Buffer.from('{"a": 1}')

/** A request of which nothing has been read yet, and its answer. */
function makeExchange(): { req: EventEmitter; res: { destroyed: boolean }; exchange: Exchange } {
  const headers = { 'content-type': 'application/json', 'content-length': String(BODY.length) }
  const req = Object.assign(new EventEmitter(), { headers })
  const res = { destroyed: false }
  return { req, res, exchange: { req, res, visit: undefined } as unknown as Exchange }
}

describe('a body', () => {
  it('is handed on with those of the same turn, with the instant at which it was read', async () => {
    let now = 7
    const clock = { now: () => now } as Clock
    const { req, exchange } = makeExchange()
    const collected = collectBody(exchange, 1_000, { clock })
    req.emit('data', BODY)
    // Node closes a request as soon as it is read; that is not its client's leaving.
    req.emit('close')
    now = 8
    expect(await collected).toEqual({ kind: 'ok', bytes: BODY, readAt: 7 })
  })

  it('whose client leaves between its last byte and the batch is not served', async () => {
    const { req, res, exchange } = makeExchange()
    const collected = collectBody(exchange, 1_000)
    req.emit('data', BODY)
    res.destroyed = true
    req.emit('close')
    expect(await collected).toEqual({ kind: 'gone' })
  })

  it('that breaks off is not served', async () => {
    const { req, exchange } = makeExchange()
    const collected = collectBody(exchange, 1_000)
    req.emit('data', BODY.subarray(0, 3))
    req.emit('close')
    expect(await collected).toEqual({ kind: 'gone' })
  })

  describe('that came with its head', () => {
    function makeWhole(buffer?: () => unknown): { res: { destroyed: boolean }; exchange: Exchange } {
      const { req, res } = makeExchange()
      let whole: Buffer | undefined = BODY
      const takeWhole = (): Buffer | undefined => {
        const bytes = whole
        whole = undefined
        return bytes
      }
      const visit = buffer && { expect: () => undefined, buffer, release: () => {} }
      const sendRefusal = (refusal: unknown): void => void refused.push(refusal)
      const pause = (): void => {}
      const exchange = { req: Object.assign(req, { takeWhole, pause }), res, visit, sendRefusal } as unknown as Exchange
      return { res, exchange }
    }
    const refused: unknown[] = []

    it('is handed on in the same way', async () => {
      const clock = { now: () => 7 } as Clock
      const collected = collectBody(makeWhole().exchange, 1_000, { clock })
      expect(await collected).toEqual({ kind: 'ok', bytes: BODY, readAt: 7 })
    })

    it('is not served when its client leaves before the batch', async () => {
      const { res, exchange } = makeWhole()
      const collected = collectBody(exchange, 1_000)
      res.destroyed = true
      expect(await collected).toEqual({ kind: 'gone' })
    })

    it('is turned away when there is no memory for it', async () => {
      const collected = collectBody(makeWhole(() => 'too much').exchange, 1_000)
      expect(await collected).toEqual({ kind: 'gone' })
      expect(refused).toEqual(['too much'])
    })
  })
})
