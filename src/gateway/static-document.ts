import { gzipSync } from 'node:zlib'
import type { Exchange } from './exchange.ts'

/**
 * A document that is the same for every client: its bytes are made and compressed once, and every answer sends the same
 * buffer. A client without a key may ask for it, so what it gets is taken from the allowance of bytes of its address:
 * otherwise thousands of clients that read nothing would have thousands of copies made.
 */
export class StaticDocument {
  readonly #contentType: string
  readonly #plain: Buffer
  readonly #zipped: Buffer

  constructor(contentType: string, text: string) {
    this.#contentType = contentType
    this.#plain = Buffer.from(text)
    this.#zipped = gzipSync(this.#plain)
  }

  send(exchange: Exchange, headers: readonly string[] = []): void {
    const isZipped = acceptsGzip(exchange.req.headers['accept-encoding'])
    const bytes = isZipped ? this.#zipped : this.#plain
    const refusal = exchange.req.method === 'HEAD' ? undefined : exchange.visit?.pass(bytes.length)
    if (refusal !== undefined) {
      exchange.sendRefusal(refusal, headers)
      return
    }
    const encoding = isZipped ? ['content-encoding', 'gzip'] : []
    exchange.sendBytes(this.#contentType, bytes, ['vary', 'accept-encoding', ...encoding, ...headers])
  }
}

/** `gzip;q=0` is how a client says that it cannot read it. */
const acceptsGzip = (header: string | string[] | undefined): boolean =>
  /(^|[,\s])gzip\s*($|,|;(?!\s*q=0(\.0*)?\s*($|,)))/i.test(String(header ?? ''))
