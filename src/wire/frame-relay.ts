import type { EngineText, Usage } from '../domain/delta.ts'
import type { AnswerIdentity } from './dialect.ts'
import { type JsonChanges, type JsonMember, membersAfter, membersOf, spliceJson } from './splice-json.ts'
import { isAsTold, usageText } from './usage-text.ts'

/**
 * Passes an engine's own text on, a frame of a stream or a whole answer, and changes only what is ours:
 *
 *   id              one for the whole answer, ours
 *   model           the client's name for it, where the engine was asked by another name
 *   usage           where we counted, and where the client did not ask for it in this place
 *   spillway        added to a degraded or retrieved answer
 *   object, created, model   added where the engine left them out
 *
 * Frames of one stream begin alike and mostly end alike. What was done to the text before and after `choices` is
 * remembered and done again without reading the frame; a frame that is different is read.
 */

/** How often a stream's beginning and end are learned anew: engines whose frames all differ are read frame by frame. */
const LEARNED_MAX = 4

const USAGE = '"usage"'
const NULL_VALUE = ':null'

const isNullAt = (json: string, at: number): boolean => json.slice(at, at + NULL_VALUE.length) === NULL_VALUE

export class FrameRelay {
  readonly #identity: AnswerIdentity
  readonly #id: string
  readonly #object: string
  /** The text up to the value of `choices` and after it, as it came and as it goes out. */
  #head = { in: '', out: '' }
  #tail = { in: '', out: '' }
  /** All that has to be changed but a usage stands in the head, so that the tail may be anything. */
  #isHeadAll = false
  #hasUsage = false
  #learned = 0
  /** The last frame that was passed on. */
  #last: EngineText | undefined

  constructor(identity: AnswerIdentity, object: string) {
    this.#identity = identity
    this.#id = JSON.stringify(identity.id)
    this.#object = `"${object}"`
  }

  /** A frame of a stream. `ours`: the JSON of our own member, which is the same for all frames. */
  frame(text: EngineText, ours: string | undefined): string {
    this.#last = text
    const { json } = text
    return this.#asBefore(json) ?? this.#read(text, ours)
  }

  /** The frame with the usage, which has no choice; undefined where nothing is left of it for this client. */
  closing(text: EngineText, usage: Usage, ours: string | undefined): string | undefined {
    const members = membersOf(text.json) ?? []
    const { includesUsage } = this.#identity
    if (!includesUsage && members.every(({ name }) => IN_EVERY_FRAME.has(name))) return undefined
    const counted = includesUsage ? (isAsTold(usage) ? undefined : usageText(usage)) : null
    return spliceJson(text.json, { ...this.#changes(text, members, ours), usage: counted }, members)
  }

  /** A whole answer. */
  document(text: EngineText, usage: Usage, ours: string | undefined): string {
    const members = membersOf(text.json) ?? []
    const isTold = isAsTold(usage) && members.some(({ name }) => name === 'usage')
    const counted = isTold ? undefined : usageText(usage)
    return spliceJson(text.json, { ...this.#changes(text, members, ours), usage: counted }, members)
  }

  /** A frame of ours in the middle of the engine's: as the engine signs its own. */
  signed(json: string): string {
    if (this.#last === undefined) return json
    const { json: last, keepsModel } = this.#last
    const changes: Record<string, string> = {}
    for (const { name, valueStart, end } of membersOf(last) ?? []) {
      if (SIGNATURE.has(name) || (name === 'model' && keepsModel)) changes[name] = last.slice(valueStart, end)
    }
    if (changes['system_fingerprint'] !== undefined) return spliceJson(json, changes)
    return spliceJson(json, { ...changes, system_fingerprint: null })
  }

  #asBefore(json: string): string | undefined {
    const { in: head, out } = this.#head
    // Slices are compared at once; `startsWith` goes through the text letter by letter, and takes twenty times as long.
    if (head === '' || json.slice(0, head.length) !== head) return undefined
    if (this.#isHeadAll)
      return out + (this.#isUsageKept(json, head.length) ? json.slice(head.length) : this.#rest(json))
    const { in: tail, out: tailOut } = this.#tail
    if (json.length < head.length + tail.length || json.slice(-tail.length) !== tail) return undefined
    if (!this.#hasUsage && json.includes(USAGE, head.length)) return undefined
    return out + json.slice(head.length, json.length - tail.length) + tailOut
  }

  /** Nothing is to be done about a usage after the head: there is none, or only a null that the client asked for. */
  #isUsageKept(json: string, from: number): boolean {
    let at = json.indexOf(USAGE, from)
    while (at >= 0) {
      if (!this.#identity.includesUsage || !isNullAt(json, at + USAGE.length)) return false
      at = json.indexOf(USAGE, at + USAGE.length)
    }
    return true
  }

  /** The text after the head, where it may have a usage of its own. */
  #rest(json: string): string {
    const from = this.#head.in.length
    const { valueEnd, members } = membersAfter(json, from)
    const at = members.findIndex(({ name }) => name === 'usage')
    const usage = members[at]
    const { usage: change } = this.#frameUsage(json, members)
    if (usage === undefined || change === undefined) return json.slice(from)
    // A member that goes takes the comma before it along.
    if (change === null) return json.slice(from, members[at - 1]?.end ?? valueEnd) + json.slice(usage.end)
    return json.slice(from, usage.valueStart) + change + json.slice(usage.end)
  }

  #read(text: EngineText, ours: string | undefined): string {
    const members = membersOf(text.json) ?? []
    const changes = { ...this.#changes(text, members, ours), ...this.#frameUsage(text.json, members) }
    const out = spliceJson(text.json, changes, members)
    if (this.#learned < LEARNED_MAX) this.#learn(text.json, members, out, ours)
    return out
  }

  #changes({ keepsModel }: EngineText, members: readonly JsonMember[], ours: string | undefined): JsonChanges {
    const { createdAtS, model } = this.#identity
    const has = (name: string): boolean => members.some((member) => member.name === name)
    return {
      id: this.#id,
      model: keepsModel && has('model') ? undefined : JSON.stringify(model),
      object: has('object') ? undefined : this.#object,
      created: has('created') ? undefined : String(createdAtS),
      spillway: ours,
    }
  }

  /** The usage of a frame with choices is for clients that asked for it in every frame. */
  #frameUsage(json: string, members: readonly JsonMember[]): JsonChanges {
    const usage = members.find(({ name }) => name === 'usage')
    if (usage === undefined) return {}
    const { includesUsage, includesRunningUsage } = this.#identity
    if (!includesUsage) return { usage: null }
    return includesRunningUsage === true || json.slice(usage.valueStart, usage.end) === 'null' ? {} : { usage: 'null' }
  }

  #learn(json: string, members: readonly JsonMember[], out: string, ours: string | undefined): void {
    const names = members.map(({ name }) => name)
    const choices = members[names.indexOf('choices')]
    if (choices === undefined || new Set(names).size < names.length) return
    if (!names.includes('id') || !names.includes('model')) return
    const written = membersOf(out)?.find(({ name }) => name === 'choices')
    if (written === undefined) return
    this.#learned++
    this.#head = { in: json.slice(0, choices.valueStart), out: out.slice(0, written.valueStart) }
    this.#tail = { in: json.slice(choices.end), out: out.slice(written.end) }
    this.#hasUsage = names.includes('usage')
    const before = names.slice(0, names.indexOf('choices'))
    this.#isHeadAll = ours === undefined && NEEDED.every((name) => before.includes(name))
  }
}

const NEEDED: readonly string[] = ['id', 'object', 'created', 'model']

/** What signs an answer: when it was made, and by what. */
const SIGNATURE: ReadonlySet<string> = new Set(['created', 'system_fingerprint', 'service_tier'])

const IN_EVERY_FRAME: ReadonlySet<string> = new Set(['id', 'object', 'model', 'choices', 'usage', ...SIGNATURE])
