import { gunzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { VirtualClock } from '../base/virtual-clock.ts'
import { OPENAI_ERRORS } from './error-words.ts'
import { Exchange } from './exchange.ts'
import type { HttpRequest, HttpResponse } from './http-message.ts'
import { Ingress, Visit } from './ingress.ts'
import { StaticDocument } from './static-document.ts'

const TEXT = '{"a":"ü"}'.repeat(40_000)

interface Sent {
  status: number
  readonly headers: string[]
  readonly parts: Array<string | Uint8Array>
}

function ask(document: StaticDocument, options: { method?: string; accept?: string; ingress?: Ingress } = {}): Sent {
  const { method = 'GET', accept, ingress } = options
  const sent: Sent = { status: 0, headers: [], parts: [] }
  const headers = accept === undefined ? {} : { 'accept-encoding': accept }
  const req = { method, headers, socket: { remoteAddress: '10.0.0.1' } } as unknown as HttpRequest
  const res = {
    headersSent: false,
    destroyed: false,
    writeHead(status: number, head: string[]) {
      sent.status = status
      sent.headers.push(...head)
    },
    write: (part: string | Uint8Array) => sent.parts.push(part),
    end: (last?: string) => last !== undefined && sent.parts.push(last),
  } as unknown as HttpResponse
  const exchange = new Exchange(req, res, 'req-1', OPENAI_ERRORS)
  const visit = ingress?.arrive({ req, clientAddress: '10.0.0.1' })
  if (visit instanceof Visit) exchange.visit = visit
  document.send(exchange)
  return sent
}

const headerOf = ({ headers }: Sent, name: string): string | undefined => headers[headers.indexOf(name) + 1]

describe('a static document', () => {
  const document = new StaticDocument('application/json', TEXT)

  it('is the same buffer in every answer, compressed where the client takes that', () => {
    const [one, two] = [ask(document), ask(document)]
    expect(Buffer.from(one.parts[0] as Uint8Array).toString()).toBe(TEXT)
    expect(two.parts[0]).toBe(one.parts[0])
    expect(headerOf(one, 'content-length')).toBe(String(Buffer.byteLength(TEXT)))
    const zipped = ask(document, { accept: 'deflate, gzip;q=0.8' })
    expect(headerOf(zipped, 'content-encoding')).toBe('gzip')
    expect(gunzipSync(zipped.parts[0] as Uint8Array).toString()).toBe(TEXT)
    expect(ask(document, { accept: 'gzip' }).parts[0]).toBe(zipped.parts[0])
    for (const accept of ['gzip;q=0', 'gzip; q=0.0, br', 'br', 'xgzip'])
      expect(ask(document, { accept }).headers, accept).not.toContain('content-encoding')
    expect(ask(document, { method: 'HEAD' }).parts).toEqual([])
  })

  it('is taken from the allowance of bytes of the address', () => {
    const ingress = new Ingress({
      clock: new VirtualClock(),
      // A burst of two documents; a third runs into debt.
      limits: { requestsPerMinute: 60_000, bytesPerMinute: 6 * 2.5 * TEXT.length, failedKeysPerMinute: 60 },
      bodyBytesMax: 1_048_576,
      breathe: () => Promise.resolve(),
      salt: 'salt',
    })
    const statuses = Array.from({ length: 5 }, () => ask(document, { ingress }).status)
    expect(statuses).toEqual([200, 200, 200, 429, 429])
  })
})
