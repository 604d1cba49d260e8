import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Refusal } from '../domain/outcome.ts'
import { errorBody, type OpenAiError, type WireFault } from '../wire/openai-error.ts'
import { retryHeaders, statusOf, toOpenAiError } from './error-table.ts'

/**
 * One HTTP request and its response: the few ways in which we answer. Header arrays go straight to the socket without
 * being merged into objects; on this path that is measurable.
 */
export class Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly id: string

  constructor(req: IncomingMessage, res: ServerResponse, id: string) {
    this.req = req
    this.res = res
    this.id = id
  }

  get isOpen(): boolean {
    return !this.res.headersSent && !this.res.destroyed
  }

  sendJson(status: number, body: string, headers: readonly string[] = []): void {
    this.send(status, 'application/json', body, headers)
  }

  send(status: number, contentType: string, body: string, headers: readonly string[] = []): void {
    if (!this.isOpen) return
    const length = String(Buffer.byteLength(body))
    this.res.writeHead(status, [
      'content-type',
      contentType,
      'content-length',
      length,
      'x-request-id',
      this.id,
      ...headers,
    ])
    this.res.end(body)
  }

  sendError(
    status: number,
    error: OpenAiError,
    headers: readonly string[] = [],
    detail?: Readonly<Record<string, unknown>>,
  ): void {
    this.sendJson(status, errorBody(error, detail), headers)
  }

  sendFault(fault: WireFault): void {
    this.sendError(fault.status, fault.error)
  }

  sendRefusal(refusal: Refusal, headers: readonly string[] = []): void {
    this.sendError(statusOf(refusal), toOpenAiError(refusal), [...retryHeaders(refusal), ...headers], refusal.detail)
  }
}
