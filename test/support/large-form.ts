import { createHash } from 'node:crypto'
import { type ClientRequest, type IncomingMessage, request } from 'node:http'

/** A form with a file of any size, made as it is sent: the client keeps no more of it than one piece. */
export interface LargeForm {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Fields in front of the file. */
  readonly before?: Readonly<Record<string, string>>
  readonly after?: Readonly<Record<string, string>>
  readonly fileBytes: number
  readonly isChunked?: boolean
  /** Called before each piece of the file; false ends the client in the middle. */
  readonly onPiece?: (sentBytes: number) => Promise<boolean>
}

export interface FormAnswer {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

export const BOUNDARY = 'weir-7c1f'
const PIECE = Buffer.alloc(64 << 10, 'spillway ')

export async function sendForm(form: LargeForm): Promise<FormAnswer & { readonly hash: string }> {
  const { before = {}, after = {}, fileBytes } = form
  const head = Buffer.from(
    `${fieldsOf(before)}--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.wav"\r\n` +
      'content-type: audio/wav\r\n\r\n',
  )
  const tail = Buffer.from(`\r\n${fieldsOf(after)}--${BOUNDARY}--\r\n`)
  const length = head.length + fileBytes + tail.length
  const sent = request(form.url, {
    method: 'POST',
    headers: {
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      ...(form.isChunked === true ? {} : { 'content-length': length }),
      ...form.headers,
    },
  })
  const answered = answerOf(sent)
  const hash = createHash('sha256')
  const write = (piece: Buffer): Promise<void> => {
    hash.update(piece)
    return written(sent, piece)
  }
  await write(head)
  // Like most clients, this one stops sending when it has been answered.
  let isAnswered = false
  void answered.then(() => {
    isAnswered = true
    sent.emit('answered')
  })
  for (let at = 0; at < fileBytes && !sent.destroyed && !isAnswered; at += PIECE.length) {
    if ((await form.onPiece?.(at)) === false) {
      sent.destroy()
      break
    }
    await write(PIECE.subarray(0, Math.min(PIECE.length, fileBytes - at)))
  }
  if (isAnswered) sent.destroy()
  else if (!sent.destroyed) {
    await write(tail)
    sent.end()
  }
  return { ...(await answered), hash: hash.digest('hex') }
}

function fieldsOf(fields: Readonly<Record<string, string>>): string {
  return Object.entries(fields)
    .map(([name, value]) => `--${BOUNDARY}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
    .join('')
}

function written(sent: ClientRequest, piece: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      sent.off('drain', done)
      sent.off('close', done)
      sent.off('answered', done)
      resolve()
    }
    if (sent.destroyed || sent.write(piece)) {
      resolve()
      return
    }
    sent.on('drain', done)
    sent.on('close', done)
    sent.on('answered', done)
  })
}

function answerOf(sent: ClientRequest): Promise<FormAnswer> {
  return new Promise((resolve) => {
    const none = { status: 0, headers: {}, text: '' }
    sent.on('error', () => resolve(none))
    sent.on('close', () => resolve(none))
    sent.on('response', (res) => {
      let text = ''
      res.on('data', (piece: Buffer) => {
        text += piece.toString()
      })
      res.on('error', () => resolve(none))
      res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, text }))
    })
  })
}
