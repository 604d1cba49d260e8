import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ToldFault, ToldRefusal } from './error-table.ts'
import type { ErrorWords } from './error-words.ts'

/**
 * One HTTP request and its response, with the few ways in which we answer. Header arrays go to the socket without being
 * merged into objects, because that is measurable on this path.
 */
export class Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly id: string
  readonly errors: ErrorWords

  constructor(req: IncomingMessage, res: ServerResponse, id: string, errors: ErrorWords) {
    this.req = req
    this.res = res
    this.id = id
    this.errors = errors
  }

  get isOpen(): boolean {
    return !this.res.headersSent && !this.res.destroyed
  }

  sendJson(status: number, body: string, headers: readonly string[] = []): void {
    this.send(status, 'application/json', body, headers)
  }

  send(status: number, contentType: string, body: string, headers: readonly string[] = []): void {
    if (!this.isOpen) return
    const length = Buffer.byteLength(body)
    const head = ['content-type', contentType, 'content-length', String(length), 'x-request-id', this.id]
    for (const part of headers) head.push(part)
    this.res.writeHead(status, head)
    // ASCII is the same in both encodings; as latin1, Node sends it together with the headers without examining it.
    this.res.end(body, length === body.length ? 'latin1' : 'utf8')
  }

  sendFault(fault: ToldFault, more: readonly string[] = []): void {
    const { status, body, headers } = this.errors.ofFault(fault)
    this.sendJson(status, body, [...headers, ...more])
  }

  sendRefusal(refusal: ToldRefusal, more: readonly string[] = []): void {
    const { status, body, headers } = this.errors.ofRefusal(refusal)
    this.sendJson(status, body, [...headers, ...more])
  }
}
