import type { Delta, Result } from '../domain/delta.ts'
import type { ScreeningTerms } from '../domain/screening.ts'
import type { KeptHold } from './restoring-hold.ts'
import { type LeafRewriting, parsedJson, rewriteLeaves } from './screen-document.ts'

/**
 * An answer that passes through, as far as it is text. JSON is held until it is whole, and every string of it is
 * rewritten; the events of a stream alike; plain text goes through as it comes. Whatever else it is, nobody here can
 * look into it: the tenant's policy says whether it may pass.
 */
export interface TransitParts {
  readonly terms: ScreeningTerms
  readonly makeText: () => KeptHold
  readonly screenWhole: (text: string) => string
  readonly leaves: LeafRewriting
  /** The answer must end: nobody can look into it. */
  readonly refuse: (category: string) => void
  readonly onUnscreened: (kind: string) => void
}

type Way = 'json' | 'events' | 'text' | 'binary'

/** Bytes of an answer that are held until it is whole; a longer one is not passed on. */
export const TRANSIT_BYTES_MAX = 8 << 20

const encoder = new TextEncoder()

export class TransitScreen {
  readonly #parts: TransitParts
  readonly #decoder = new TextDecoder()
  #way: Way = 'binary'
  #head: Delta | undefined
  #text = ''
  #bytes = 0
  #channel: KeptHold | undefined

  constructor(parts: TransitParts) {
    this.#parts = parts
  }

  begin(result: Extract<Result, { kind: 'transit' }>, delta: Delta): Delta | undefined {
    this.#way = wayOf(result.head.headers)
    // Names of files and languages are an engine's words, too.
    const headers = result.head.headers.map((text, i) => (i % 2 === 0 ? text : this.#parts.screenWhole(text)))
    if (this.#way === 'binary')
      return this.#beginBinary({ ...delta, result: { kind: 'transit', head: { ...result.head, headers } } })
    // Lengths change.
    const head = { ...result.head, headers: without(headers, 'content-length') }
    this.#head = { tokens: delta.tokens, result: { kind: 'transit', head } }
    return undefined
  }

  take(bytes: Uint8Array, delta: Delta): Delta | undefined {
    if (this.#way === 'binary') return delta
    const text = this.#decoder.decode(bytes, { stream: true })
    if (this.#way === 'text') {
      this.#channel ??= this.#parts.makeText()
      return this.#written(this.#channel.push(text))
    }
    this.#bytes += bytes.length
    if (this.#bytes > TRANSIT_BYTES_MAX) {
      this.#text = ''
      this.#parts.refuse('too-large')
      return undefined
    }
    this.#text += text
    return undefined
  }

  flush(): Delta | undefined {
    if (this.#way === 'binary') return undefined
    const rest = this.#decoder.decode()
    if (this.#way === 'text') {
      const channel = this.#channel ?? this.#parts.makeText()
      return this.#written(channel.push(rest) + channel.flush(), true)
    }
    const text = this.#text + rest
    this.#text = ''
    return this.#written(this.#way === 'json' ? this.#document(text) : this.#events(text), true)
  }

  #beginBinary(delta: Delta): Delta | undefined {
    if (this.#parts.terms.binary === 'refuse') {
      this.#parts.refuse('binary')
      return undefined
    }
    this.#parts.onUnscreened('binary')
    return delta
  }

  /** Something that says it is JSON and is not is a text. */
  #document(text: string): string {
    const json = parsedJson(text)
    if (json === undefined) return this.#parts.screenWhole(text)
    return JSON.stringify(rewriteLeaves(json, this.#parts.leaves))
  }

  /**
   * Pieces of one text (`delta`) are joined before they are looked at, and go out as the first of their events: a value
   * may be cut anywhere between two of them.
   */
  #events(text: string): string {
    const events = text.split(/\r?\n\r?\n/).map((event) => readEvent(event))
    joinPieces(events.map(({ json }) => json))
    return events
      .flatMap(({ lines, json }) => {
        if (json === undefined) return lines.length === 0 ? [] : [lines.map(this.#parts.screenWhole).join('\n')]
        if (isPiece(json) && json.delta === '') return []
        const head = lines.filter((line) => !line.startsWith('data:')).map(this.#parts.screenWhole)
        return [[...head, `data: ${JSON.stringify(rewriteLeaves(json, this.#parts.leaves))}`].join('\n')]
      })
      .map((event) => `${event}\n\n`)
      .join('')
  }

  #written(text: string, isEnd = false): Delta | undefined {
    if (text === '' && !isEnd) return undefined
    const bytes = encoder.encode(text)
    const head = this.#head
    this.#head = undefined
    return head === undefined ? { tokens: 0, bytes } : { ...head, bytes }
  }
}

interface SseEvent {
  readonly lines: readonly string[]
  readonly json: unknown
}

function readEvent(event: string): SseEvent {
  const lines = event.split(/\r?\n/).filter((line) => line !== '')
  const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice('data:'.length).trim())
  return { lines, json: data.length === 0 ? undefined : parsedJson(data.join('\n')) }
}

const isPiece = (json: unknown): json is { readonly type: string; readonly delta: string } => {
  if (typeof json !== 'object' || json === null) return false
  const { type, delta } = json as { type?: unknown; delta?: unknown }
  return typeof type === 'string' && typeof delta === 'string'
}

/** Members of a delta that come whole. */
const WHOLE: ReadonlySet<string> = new Set(['role', 'type', 'id', 'name', 'finish_reason'])
/** Objects within each other that are looked into for pieces; engines nest three. */
const PIECE_DEPTH_MAX = 8

/** Pieces of the same text, which stand in the same place of their events, become one: the first. */
function joinPieces(events: readonly unknown[]): void {
  const firsts = new Map<string, { readonly holder: Record<string, unknown>; readonly name: string; text: string }>()
  const look = (value: unknown, path: string, isDelta: boolean, depth: number): void => {
    if (typeof value !== 'object' || value === null || depth > PIECE_DEPTH_MAX) return
    const holder = value as Record<string, unknown>
    for (const [name, one] of Object.entries(holder)) {
      const at = `${path}/${name}`
      const isPart = isDelta || name === 'delta' || /\/choices\/\d+\/text$/.test(at)
      if (typeof one !== 'string') look(one, at, isPart, depth + 1)
      else if (isPart && !WHOLE.has(name)) {
        const known = firsts.get(at)
        if (known === undefined) firsts.set(at, { holder, name, text: one })
        else {
          known.text += one
          holder[name] = ''
        }
      }
    }
  }
  for (const event of events) {
    const type = (event as { type?: unknown } | undefined)?.type
    look(event, typeof type === 'string' ? type : '', false, 0)
  }
  for (const { holder, name, text } of firsts.values()) holder[name] = text
}

const TEXT_TYPE = /^(?:text\/|application\/(?:x-subrip|(?:x-)?ndjson|(?:x-)?jsonl(?:ines)?|xml|(?:x-)?yaml)\b)/

function wayOf(headers: readonly string[]): Way {
  const type = (headerOf(headers, 'content-type') ?? '').toLowerCase()
  // Compressed bytes are asked for by nobody here, and cannot be read.
  if (headerOf(headers, 'content-encoding') !== undefined) return 'binary'
  if (/charset=(?!"?(?:utf-?8|us-ascii|iso-8859-1)\b)/.test(type)) return 'binary'
  if (/\bjson\b/.test(type)) return 'json'
  if (type.startsWith('text/event-stream')) return 'events'
  return TEXT_TYPE.test(type) ? 'text' : 'binary'
}

function headerOf(headers: readonly string[], name: string): string | undefined {
  const at = headers.findIndex((one, i) => i % 2 === 0 && one.toLowerCase() === name)
  return at < 0 ? undefined : headers[at + 1]
}

const without = (headers: readonly string[], name: string): string[] =>
  headers.filter((_, i) => (headers[i - (i % 2)] as string).toLowerCase() !== name)
