import { isUtf8 } from 'node:buffer'
import { type Checked, makeCheck } from './check.ts'
import { invalidRequest } from './openai-error.ts'
import { hasLoneSurrogate, hasNul } from './scan-json.ts'
import {
  type ChatBody,
  ChatBody as ChatSchema,
  type CompletionBody,
  CompletionBody as CompletionSchema,
} from './schemas.ts'

/**
 * Bytes → a checked body. All errors of a client's body are made here, in OpenAI's format. The bytes have been scanned
 * (`scan-json.ts`): parsing them takes a bounded time.
 */

export function readJson(bytes: Buffer): Checked<unknown> {
  return andThen(readText(bytes), parseText)
}

/** The text of a body. */
function readText(bytes: Buffer): Checked<string> {
  if (!isUtf8(bytes)) {
    return { kind: 'fault', fault: invalidRequest('The request body is not valid UTF-8.', null, 'invalid-encoding') }
  }
  const text = bytes.toString('utf8')
  if (!hasLoneSurrogate(text)) return { kind: 'ok', value: text }
  const message = 'The request body has half a character: a \\ud800 to \\udfff without its other half.'
  return { kind: 'fault', fault: invalidRequest(message, null, 'invalid-encoding') }
}

function parseText(text: string): Checked<unknown> {
  try {
    return { kind: 'ok', value: JSON.parse(text) }
  } catch (error) {
    const where = positionOnly(error instanceof Error ? error.message : '')
    return {
      kind: 'fault',
      fault: invalidRequest(`The request body is not valid JSON: ${where}.`, null, 'invalid-json'),
    }
  }
}

/** A body whose texts go into a database. */
export function readStorable(bytes: Buffer): Checked<unknown> {
  const read = readJson(bytes)
  if (read.kind === 'fault' || !hasNul(bytes.toString('utf8'))) return read
  const message = 'The request body has the character U+0000, which cannot be stored.'
  return { kind: 'fault', fault: invalidRequest(message, null, 'invalid-encoding') }
}

/** V8 quotes the text around a syntax error. The position is kept; the quote could put a prompt into a log. */
function positionOnly(message: string): string {
  const position = /position \d+( \(line \d+ column \d+\))?/.exec(message)
  return position === null ? 'it ends too early or has a stray character' : `unexpected text at ${position[0]}`
}

export const checkChat = makeCheck(ChatSchema)
export const checkCompletion = makeCheck(CompletionSchema)

/** A checked body, and the text that it was written as. */
export interface ReadBody<T> {
  readonly body: T
  readonly raw: string
}

/** `onlyModel`: the model of a request that names none, where there is only one that it can mean. */
export const readChat = (bytes: Buffer, onlyModel?: string): Checked<ReadBody<ChatBody>> =>
  readAs(checkChat, bytes, onlyModel)
export const readCompletion = (bytes: Buffer, onlyModel?: string): Checked<ReadBody<CompletionBody>> =>
  readAs(checkCompletion, bytes, onlyModel)

export function readAs<T>(
  check: (json: unknown) => Checked<T>,
  bytes: Buffer,
  onlyModel?: string,
): Checked<ReadBody<T>> {
  const text = readText(bytes)
  if (text.kind === 'fault') return text
  const json = parseText(text.value)
  if (json.kind === 'fault') return json
  const checked = check(withModel(json.value, onlyModel))
  return checked.kind === 'fault' ? checked : { kind: 'ok', value: { body: checked.value, raw: text.value } }
}

function withModel(json: unknown, onlyModel: string | undefined): unknown {
  if (onlyModel === undefined || typeof json !== 'object' || json === null || Array.isArray(json)) return json
  const { model } = json as { model?: unknown }
  return model === undefined || model === null ? { ...json, model: onlyModel } : json
}

export function andThen<A, B>(first: Checked<A>, next: (value: A) => Checked<B>): Checked<B> {
  return first.kind === 'ok' ? next(first.value) : first
}
