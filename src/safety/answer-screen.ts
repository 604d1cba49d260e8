import type { ChoiceDelta, Delta, Result, Usage } from '../domain/delta.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { ScreenFinding, Screening, ScreenName } from '../domain/screening.ts'
import type { AnswerScreen } from '../lifecycle/screening-ports.ts'
import { type ChoiceParts, ChoiceScreen, type ChoiceWriting } from './choice-screen.ts'
import { FindingTally } from './findings.ts'
import { type LeafRewriting, numbersOf, PERSONAL_DIGITS_MIN, parsedJson, rewriteLeaves } from './screen-document.ts'
import { AnswerPolicies, type AnswerPolicy, type AnswerScreenParts } from './screen-parts.ts'
import { TransitScreen } from './transit-screen.ts'
import { WrittenChoices } from './written-choices.ts'

/**
 * One answer on its way out. Each text of each choice is held as far as it could still become a finding
 * (`choice-screen.ts`); the rest goes on. An engine's own frames and documents do not pass: they are written anew from
 * what the screens have seen. What has text in other forms (log probabilities, ids of tokens, members that nobody here
 * knows) is left out, and named in `dropped`.
 *
 * Without a rule that changes text, and without placeholders to restore, deltas pass as they are and are only looked at.
 */
export class AnswerScreens {
  readonly #policies: AnswerPolicies

  constructor(parts: AnswerScreenParts) {
    this.#policies = new AnswerPolicies(parts)
  }

  of(screening: Screening): AnswerScreen | undefined {
    const policy = this.#policies.of(screening)
    const isNeeded = policy.isScreening || policy.skipped.length > 0 || screening.restorer !== undefined
    return isNeeded ? new HeldAnswer(policy, screening) : undefined
  }
}

/** Members of frames and choices that are read, ours, or say nothing about the text. */
const READ: ReadonlySet<string> = new Set(['id', 'object', 'created', 'model', 'choices', 'usage', 'spillway'])
const READ_OF_CHOICE: ReadonlySet<string> = new Set(['index', 'delta', 'message', 'text', 'finish_reason', 'logprobs'])
/** Words of an engine about itself. */
const SIGNATURE: ReadonlySet<string> = new Set(['system_fingerprint', 'service_tier', 'created'])
/** Names that are told of as left out. */
const DROPPED_MAX = 16
/** Words of the protocol. Whatever has capitals or digits may be a key or a number. */
const FINISH_REASON = /^[a-z_]{1,40}$/
const MEMBER_NAME = /^[a-z][a-z_.-]{0,39}$/

export class HeldAnswer implements AnswerScreen {
  readonly #policy: AnswerPolicy
  readonly #screening: Screening
  readonly #tally = new FindingTally('output')
  readonly #isRewriting: boolean
  readonly #hasKept: boolean
  /** At most as many as were asked for, which the backends see to. */
  readonly #choices = new Map<number, ChoiceScreen>()
  readonly #parts: ChoiceParts
  readonly #leaves: LeafRewriting
  readonly #dropped = new Set<string>()
  readonly #unscreened = new Set<string>()
  #transit: TransitScreen | undefined
  #hasSeenFrame = false
  /** Tokens of deltas that are held. */
  #tokens = 0
  /** The engine's words about itself that wait for text. */
  #beside: Readonly<Record<string, unknown>> | undefined

  constructor(policy: AnswerPolicy, screening: Screening) {
    this.#policy = policy
    this.#screening = screening
    const { restorer } = screening
    this.#hasKept = restorer !== undefined
    this.#isRewriting = policy.isRewriting || restorer !== undefined
    this.#parts = {
      makeText: () => policy.makeText(this.#tally, restorer),
      screenWhole: (text) => this.#screenWhole(text),
      onUnknown: (name, value) => this.#passUnknown(name, value),
    }
    // A pattern of a tenant's own may mean any number.
    const digitsMin = screening.terms.patterns.length > 0 ? 1 : PERSONAL_DIGITS_MIN
    this.#leaves = { rewrite: this.#parts.screenWhole, digitsMin }
  }

  get blockedBy(): ScreenFinding | undefined {
    return this.#tally.blockedBy
  }

  get findings(): readonly ScreenFinding[] {
    return this.#tally.list
  }

  get dropped(): readonly string[] {
    return [...this.#dropped]
  }

  get unscreened(): readonly string[] {
    return [...this.#unscreened]
  }

  get skipped(): readonly ScreenName[] {
    return this.#policy.skipped
  }

  get heldLength(): number {
    let length = 0
    for (const choice of this.#choices.values()) length += choice.heldLength
    return length
  }

  write(delta: Delta): Delta | undefined {
    const { choices, result, bytes } = delta
    if (result !== undefined) return this.#writeResult(result, delta)
    if (bytes !== undefined) return this.#transit === undefined ? delta : this.#transit.take(bytes, delta)
    // Simulated answers have no text.
    if (choices === undefined) return delta
    if (!this.#isRewriting) return this.#watch(delta, choices)
    this.#tokens += delta.tokens
    if (!this.#hasSeenFrame) this.#noteDropped(delta)
    const to = this.#writing()
    for (const choice of choices) this.#take(choice, to)
    if (delta.beside !== undefined) this.#noteSignature(delta.beside)
    return this.#released(to)
  }

  flush(): Delta | undefined {
    if (this.#transit !== undefined) return this.#transit.flush()
    const to = this.#writing()
    for (const choice of this.#choices.values()) choice.flush(to)
    return this.#isRewriting ? this.#released(to) : undefined
  }

  /** The usage with an engine's own numbers, and without its other words. */
  closing(usage: Usage): Usage {
    if (!this.#isRewriting || usage.told === undefined) return usage
    const { source } = usage.told
    const told = parsedJson(source.json) as { usage?: unknown } | undefined
    const json = JSON.stringify({ choices: [], usage: numbersOf(told?.usage) ?? {} })
    return { ...usage, told: { ...usage.told, source: { json, keepsModel: false } } }
  }

  /** An engine that refuses a request may quote it. */
  refusal(refusal: Refusal): Refusal {
    const { told, kept } = refusal
    if (!this.#isRewriting || (told === undefined && kept === undefined)) return refusal
    const leaves = this.#leaves
    return {
      ...refusal,
      ...(told !== undefined && { told: { ...told, error: rewriteLeaves(told.error, leaves) as typeof told.error } }),
      ...(kept !== undefined && { kept: { ...kept, body: this.#body(kept.body) } }),
    }
  }

  #body(text: string): string {
    const json = parsedJson(text)
    return json === undefined ? this.#screenWhole(text) : JSON.stringify(rewriteLeaves(json, this.#leaves))
  }

  #take(choice: ChoiceDelta, to: ChoiceWriting): void {
    const { index, content, extra, finishReason, logprobs } = choice
    const screen = this.#choiceAt(index)
    if (logprobs !== undefined && logprobs !== null) this.#drop('logprobs')
    if (extra === undefined && finishReason === null) {
      if (content !== null && content !== '') screen.plain(content, to)
    } else if (finishReason === null || FINISH_REASON.test(finishReason)) screen.take(choice, to)
    else screen.take({ ...choice, finishReason: 'stop' }, to)
  }

  #choiceAt(index: number): ChoiceScreen {
    const known = this.#choices.get(index)
    if (known !== undefined) return known
    const made = new ChoiceScreen(index, this.#parts)
    this.#choices.set(index, made)
    return made
  }

  /** Nothing is changed: texts are looked at beside the stream, which passes as it is. */
  #watch(delta: Delta, choices: readonly ChoiceDelta[]): Delta {
    const to = this.#writing()
    for (const choice of choices) this.#take(choice, to)
    return delta
  }

  #writing(): ChoiceWriting {
    return { client: new WrittenChoices(), kept: this.#hasKept ? new WrittenChoices() : undefined }
  }

  /** Tokens that were held go with what is released next, so that those who count them miss none. */
  #released({ client, kept }: ChoiceWriting): Delta | undefined {
    const choices = client.list
    if (choices.length === 0) return undefined
    const tokens = this.#tokens
    const beside = this.#beside
    this.#tokens = 0
    this.#beside = undefined
    if (kept === undefined && beside === undefined) return { tokens, choices }
    return {
      tokens,
      choices,
      ...(kept !== undefined && { kept: kept.list }),
      ...(beside !== undefined && { beside }),
    }
  }

  #writeResult(result: Result, delta: Delta): Delta | undefined {
    if (!this.#isRewriting) return delta
    if (result.kind === 'transit') {
      this.#transit = new TransitScreen({
        ...this.#parts,
        leaves: this.#leaves,
        terms: this.#screening.terms,
        refuse: (category) => this.#tally.note(this.#policy.firstScreen, category, 'block'),
        onUnscreened: (kind) => this.#unscreened.add(kind),
      })
      return this.#transit.begin(result, delta)
    }
    const { frame: _frame, ...rest } = delta
    // Vectors are numbers.
    if (result.kind === 'vectors') return rest
    // Numbers of tensors are what a model computed; texts are strings there.
    const leaves = { ...this.#leaves, digitsMin: Number.POSITIVE_INFINITY }
    const document = rewriteLeaves(result.document, leaves) as Readonly<Record<string, unknown>>
    return this.blockedBy === undefined ? { ...rest, result: { kind: 'tensors', document } } : undefined
  }

  #screenWhole(text: string): string {
    if (text === '') return ''
    const channel = this.#policy.makeText(this.#tally, this.#screening.restorer)
    return channel.push(text) + channel.flush()
  }

  /** Sound that a model speaks passes as the policy for what cannot be read says, without the text that goes with it. */
  #passUnknown(name: string, value: unknown): unknown {
    if (isEmpty(value)) return undefined
    const sound = name === 'audio' ? soundOf(value) : undefined
    if (sound === undefined || this.#screening.terms.binary === 'refuse') {
      this.#drop(name)
      return undefined
    }
    this.#drop('audio.transcript')
    this.#unscreened.add('audio')
    return { ...sound, ...(sound.id !== undefined && { id: this.#screenWhole(sound.id) }) }
  }

  #noteSignature(beside: NonNullable<Delta['beside']>): void {
    for (const [name, value] of Object.entries(beside))
      if (SIGNATURE.has(name)) this.#beside = { ...this.#beside, [name]: rewriteLeaves(value, this.#leaves) }
  }

  /** Frames of one answer look alike: what is left out of the first is left out of all. */
  #noteDropped({ frame, ahead = [], beside = {}, choices = [] }: Delta): void {
    this.#hasSeenFrame = true
    for (const { frame: one } of ahead) this.#noteMembers(parsedJson(one.json))
    if (frame !== undefined) this.#noteMembers(parsedJson(frame.json))
    this.#noteNames(beside, READ)
    for (const choice of choices) this.#noteNames(choice.beside ?? {}, READ_OF_CHOICE)
  }

  #noteMembers(json: unknown): void {
    if (typeof json !== 'object' || json === null) return
    this.#noteNames(json, READ)
    const { choices } = json as { choices?: unknown }
    for (const choice of Array.isArray(choices) ? (choices as unknown[]) : [])
      if (typeof choice === 'object' && choice !== null) this.#noteNames(choice, READ_OF_CHOICE)
  }

  #noteNames(members: object, read: ReadonlySet<string>): void {
    for (const [name, value] of Object.entries(members))
      if (!read.has(name) && !SIGNATURE.has(name) && !isEmpty(value)) this.#drop(name)
  }

  #drop(name: string): void {
    if (this.#dropped.size < DROPPED_MAX) this.#dropped.add(MEMBER_NAME.test(name) ? name : 'other')
  }
}

/** Engines send some members empty: nothing is lost with them. */
const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/

/** What is sound of a model's speech: its bytes and how long they are kept. */
function soundOf(
  value: unknown,
): { readonly id?: string; readonly data?: string; readonly expires_at?: number } | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { id, data, expires_at: until } = value as Readonly<Record<string, unknown>>
  if (data !== undefined && (typeof data !== 'string' || !BASE64.test(data))) return undefined
  return {
    ...(typeof id === 'string' && { id }),
    ...(data !== undefined && { data }),
    ...(typeof until === 'number' && until < 10 ** (PERSONAL_DIGITS_MIN - 1) && { expires_at: until }),
  }
}
