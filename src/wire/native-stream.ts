import type { ChoiceDelta, EngineText, Usage } from '../domain/delta.ts'
import type { NativeDialect } from '../domain/request.ts'
import type { AnswerIdentity, StreamWriter, WholeWriter } from './dialect.ts'
import { membersOf, memberText, spliceJson } from './splice-json.ts'

/**
 * Passes on the events of an engine that speaks the client's own dialect, and changes only what is ours: the answer's id,
 * the model's name of an alias, usage that we count otherwise, and `spillway` in a degraded answer. An answer of another
 * replica, which was asked in chat's words, is written by the translating writer: which of the two it is shows in the
 * first delta. The event that ends an answer waits for the usage that counts.
 */
export interface NativeWords {
  readonly dialect: NativeDialect
  /** Member of an event that has the answer's object (`response`, `message`); that object has the id and the model. */
  readonly objectIn: string
  isEnd(type: string): boolean
  /** Follows the events, for an end that the engine does not write itself. */
  note(type: string, json: string): void
  /** The last event with the usage that counts. */
  closing(json: string, usage: Usage): string
  /** Events that end an answer which was cut here. */
  cut(usage: Usage, own: Own): string
  /** Events of an answer that breaks off. `error`: the error's document in the words of the exchange. */
  broken(error: string, own: Own): string
  /** A whole answer with the usage that counts. */
  document(json: string, usage: Usage): string
}

/** Puts what is ours into the object of an answer. */
export type Own = (object: string) => string

export const eventText = (type: string, json: string): string =>
  `event: ${type}\ndata: ${json.includes('\n') ? json.replaceAll('\n', ' ') : json}\n\n`

const ownIn =
  ({ id, model }: AnswerIdentity, keepsModel: boolean, ours: string | undefined): Own =>
  (object) =>
    spliceJson(object, {
      id: JSON.stringify(id),
      model: keepsModel && memberText(object, 'model') !== undefined ? undefined : JSON.stringify(model),
      spillway: ours,
    })

export class NativeStream implements StreamWriter {
  readonly relays: NativeDialect
  readonly #translated: StreamWriter
  readonly #words: NativeWords
  readonly #identity: AnswerIdentity
  #rung = 'full'
  #own: Own | undefined
  /** The end, and what came behind it. */
  #end: { readonly type: string; readonly json: string; rest: string } | undefined

  constructor(translated: StreamWriter, words: NativeWords, identity: AnswerIdentity) {
    this.#translated = translated
    this.#words = words
    this.#identity = identity
    this.relays = words.dialect
  }

  get keepAlive(): string {
    return this.#translated.keepAlive
  }

  noteRung(rung: string): void {
    this.#rung = rung
    this.#translated.noteRung(rung)
  }

  /** After an event of the engine, a chunk is the end that the bound of the answer made. */
  chunk(choices: readonly ChoiceDelta[]): string {
    return this.#own === undefined ? this.#translated.chunk(choices) : ''
  }

  aside(more: Readonly<Record<string, unknown>>): string {
    return this.#own === undefined ? this.#translated.aside(more) : ''
  }

  relay(frame: EngineText): string {
    const ours = this.#rung === 'full' ? undefined : JSON.stringify({ rung: this.#rung })
    this.#own ??= ownIn(this.#identity, frame.keepsModel, ours)
    const { objectIn } = this.#words
    const members = membersOf(frame.json) ?? []
    const type = typeOf(memberText(frame.json, 'type', members))
    const object = memberText(frame.json, objectIn, members)
    const isOwned = object?.startsWith('{') === true
    const json = isOwned ? spliceJson(frame.json, { [objectIn]: this.#own(object) }, members) : frame.json
    this.#words.note(type, json)
    if (this.#end !== undefined) this.#end.rest += eventText(type, json)
    else if (this.#words.isEnd(type)) this.#end = { type, json, rest: '' }
    else return eventText(type, json)
    return ''
  }

  end(usage: Usage): string {
    if (this.#own === undefined) return this.#translated.end(usage)
    if (this.#end === undefined) return this.#words.cut(usage, this.#own)
    const { type, json, rest } = this.#end
    return eventText(type, this.#words.closing(json, usage)) + rest
  }

  fail(error: string): string {
    return this.#own === undefined ? this.#translated.fail(error) : this.#words.broken(error, this.#own)
  }
}

/** A name that can stand in a line. */
function typeOf(text: string | undefined): string {
  const type = text === undefined ? '' : (JSON.parse(text) as unknown)
  return typeof type === 'string' && /^[\w.-]{1,100}$/.test(type) ? type : 'message'
}

export class NativeWhole implements WholeWriter {
  readonly relays: NativeDialect
  readonly #translated: WholeWriter
  readonly #words: NativeWords
  readonly #identity: AnswerIdentity
  #document: EngineText | undefined

  constructor(translated: WholeWriter, words: NativeWords, identity: AnswerIdentity) {
    this.#translated = translated
    this.#words = words
    this.#identity = identity
    this.relays = words.dialect
  }

  add(choices: readonly ChoiceDelta[]): void {
    this.#translated.add(choices)
  }

  relay(document: EngineText): void {
    this.#document = document
  }

  encode(usage: Usage, ours?: Readonly<Record<string, unknown>>): string {
    if (this.#document === undefined) return this.#translated.encode(usage, ours)
    const { json, keepsModel } = this.#document
    const own = ownIn(this.#identity, keepsModel, ours === undefined ? undefined : JSON.stringify(ours))
    return this.#words.document(own(json), usage)
  }
}
