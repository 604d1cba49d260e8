import type { Socket } from 'node:net'
import { invalidRequest, type WireFault } from '../wire/openai-error.ts'
import type { ErrorWords } from './error-words.ts'
import { STATUS_CODES } from './http-node.ts'

/**
 * Answers bytes that are not a request: no HTTP, headers without end, a client too slow to send the rest. Node would
 * send a bare status line, and to a slow client 408, which makes SDKs try again. We answer in the shape of every other
 * error, and close.
 */
export function answerBrokenRequest(
  error: NodeJS.ErrnoException,
  socket: Socket,
  isAnswering: boolean,
  { requestId, errors }: { readonly requestId: string; readonly errors: ErrorWords },
): void {
  if (!socket.writable || isAnswering) {
    socket.destroy()
    return
  }
  answerOnSocket(socket, faultOf(error.code), { requestId, errors })
}

/** Writes an answer to a connection that has no response object, and closes the connection. */
export function answerOnSocket(socket: Socket, fault: WireFault, { requestId, errors, headers = [] }: RawAnswer): void {
  const { status, body } = errors.ofFault(fault)
  const head = [`HTTP/1.1 ${status} ${STATUS_CODES[status]}`, 'connection: close', 'content-type: application/json']
  for (let i = 0; i < headers.length; i += 2) head.push(`${headers[i]}: ${headers[i + 1]}`)
  head.push(`content-length: ${Buffer.byteLength(body)}`, `x-request-id: ${requestId}`, 'x-should-retry: false')
  // A client that hangs up meanwhile is no fault of ours.
  socket.on('error', () => {})
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  socket.destroySoon()
}

interface RawAnswer {
  readonly requestId: string
  readonly errors: ErrorWords
  /** More headers: name, value, name, value. */
  readonly headers?: readonly string[]
}

function faultOf(code: string | undefined): WireFault {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return invalidRequest('The request was not sent in time.', null, 'request-too-slow')
    case 'HPE_HEADER_OVERFLOW':
      return invalidRequest('The request headers are too long.', null, 'headers-too-large')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return invalidRequest('The chunk extensions are too long.', null, 'request-too-large')
    default:
      return invalidRequest('This is not an HTTP request.', null, 'invalid-http')
  }
}
