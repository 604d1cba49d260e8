import { invalidRequest, type WireFault } from './openai-error.ts'

/**
 * A form with files (`multipart/form-data`, RFC 7578), cut into its parts. Contents are views of the bytes, not copies:
 * a form of 32 megabytes takes no more memory than its body.
 *
 * The number of parts is bounded before any part is read. A form of ours has two or three fields; 500,000 empty ones
 * took two seconds of the event loop.
 */
export interface FormPart {
  readonly name: string
  /** Undefined for a plain field. */
  readonly fileName: string | undefined
  readonly content: Buffer
}

export type FormRead =
  | { readonly kind: 'ok'; readonly parts: readonly FormPart[] }
  | { readonly kind: 'fault'; readonly fault: WireFault }

/** Far more fields than any upload has. */
export const FORM_PARTS_MAX = 64
/** The headers of a part: a long file name fits. */
export const PART_HEAD_BYTES_MAX = 8_192
/** RFC 2046: a boundary has at most 70 characters. */
const BOUNDARY_PATTERN = /;\s*boundary=(?:"([^"\r\n]{1,70})"|([^\s;"]{1,70}))/i

export const CRLF = '\r\n'

export function boundaryOf(contentType: string): string | undefined {
  const found = BOUNDARY_PATTERN.exec(contentType)
  return found?.[1] ?? found?.[2]
}

export function readForm(bytes: Buffer, contentType: string): FormRead {
  const boundary = boundaryOf(contentType)
  if (boundary === undefined) return unreadable('its Content-Type has no boundary')
  const delimiter = Buffer.from(`${CRLF}--${boundary}`)
  // The first delimiter may begin the body; each later one has a line end in front, which is not content.
  let at = bytes.indexOf(delimiter.subarray(CRLF.length))
  if (at < 0) return unreadable('its boundary is not in the body')
  at += delimiter.length - CRLF.length
  const parts: FormPart[] = []
  while (!isAt(bytes, at, '--')) {
    if (parts.length === FORM_PARTS_MAX) return unreadable(`it has more than ${FORM_PARTS_MAX} parts`)
    // Blanks are allowed between a delimiter and its line end.
    while (bytes[at] === 0x20 || bytes[at] === 0x09) at++
    if (!isAt(bytes, at, CRLF)) return unreadable('a part has no line end after its boundary')
    const end = bytes.indexOf(delimiter, at)
    if (end < 0) return unreadable('its last part has no end')
    const part = readPart(bytes.subarray(at, end))
    if (typeof part === 'string') return unreadable(part)
    parts.push(part)
    at = end + delimiter.length
  }
  return { kind: 'ok', parts }
}

const isAt = (bytes: Buffer, at: number, text: string): boolean =>
  bytes.toString('latin1', at, at + text.length) === text

/** A part from the line end after its delimiter to its last byte; a text says what is wrong with it. */
function readPart(part: Buffer): FormPart | string {
  const headEnd = part.indexOf(`${CRLF}${CRLF}`)
  if (headEnd < 0) return 'a part has no empty line after its headers'
  if (headEnd > PART_HEAD_BYTES_MAX) return `the headers of a part are longer than ${PART_HEAD_BYTES_MAX} bytes`
  const names = readPartHead(part.toString('utf8', 0, headEnd))
  return typeof names === 'string' ? names : { ...names, content: part.subarray(headEnd + 2 * CRLF.length) }
}

/** The headers of a part, each with a line end in front; a text says what is wrong with them. */
export function readPartHead(head: string): Pick<FormPart, 'name' | 'fileName'> | string {
  const disposition = /\r\ncontent-disposition:\s*form-data\s*(;.*)?/i.exec(head)?.[1]
  const name = disposition === undefined ? undefined : parameterOf(disposition, 'name')
  if (disposition === undefined || name === undefined) return 'a part has no name'
  return { name, fileName: parameterOf(disposition, 'filename') }
}

/** Browsers write a quote in a name as `%22`, older clients as `\"`. */
function parameterOf(disposition: string, name: string): string | undefined {
  const found = new RegExp(`;\\s*${name}=(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s;"]*))`, 'i').exec(disposition)
  const text = found?.[1]?.replaceAll(/\\(["\\])/g, '$1').replaceAll('%22', '"') ?? found?.[2]
  return text?.replaceAll(/%0D|%0A/gi, ' ')
}

const unreadable = (why: string): FormRead => ({
  kind: 'fault',
  fault: invalidRequest(`The form could not be read: ${why}.`, null, 'invalid-file'),
})
