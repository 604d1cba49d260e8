import type { Cancellation } from '../base/cancellation.ts'
import { fnv1a32, Rng } from '../base/rng.ts'
import type { Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import { type EngineKnobs, readEngineKnobs } from '../wire/engine-knobs.ts'
import { logprobsWish } from '../wire/logprobs.ts'
import { passageText } from '../wire/passage-text.ts'
import type { ChatBody, CompletionBody } from '../wire/schemas.ts'
import { BlockNames } from './block-names.ts'
import { AnswerMaterial } from './extract-answer.ts'
import { type LongWork, WORK_PER_BREATH } from './long-work.ts'
import { charactersOf, type PromptReader, type ReadPrompt, type ReadSegment } from './prompt-reader.ts'
import type { Script, Scripts, ScriptsMade } from './simulated.ts'
import { makeSimulatedLogprobs } from './simulated-logprobs.ts'
import { append, encodeWhole, piecesOf, type Tokenizer } from './tokenizer.ts'

/**
 * The script of an answer in text: its words (`extract-answer.ts`) in real tokens, its length, and why it ends.
 *
 * A model does not know `max_tokens`: the natural length of an answer is drawn first, from a trace, and filled with
 * whole sentences; then the answer is cut at a stop sequence or at the token limit. So an answer ends inside a sentence
 * only with the finish reason `length`, or at a stop sequence. The same seed, prompt and client's `seed` give the same
 * answer.
 *
 * Each sentence is tokenized once, with the blank before it, which gives the tokens of the whole text.
 */
export interface SimulatedTextOptions {
  readonly reader: PromptReader
  readonly seed: number
  /** Tokens per prefix hash; the engine's block size. */
  readonly blockTokens: number
  /** Most tokens of prompt and answer together. */
  readonly contextTokensMax: number
}

const PREAMBLE = 'Simulated answer, taken from your own words:'
/** For answers so short that the long preamble would fill most of them. */
const PREAMBLE_SHORT = 'Simulated:'
const PREAMBLE_SHORT_BELOW = 32

/** Lengths as in a public production trace (Azure 2023, conversations): median 129, P90 424, P99 601. */
const LENGTHS: ReadonlyArray<readonly [quantile: number, tokens: number]> = [
  [0, 8],
  [0.5, 129],
  [0.9, 424],
  [0.99, 601],
  [1, 800],
]

export class SimulatedText implements Scripts {
  readonly #options: SimulatedTextOptions

  constructor(options: SimulatedTextOptions) {
    this.#options = options
  }

  scriptsFor(request: Request, plan: Plan, cancellation: Cancellation): ScriptsMade | Promise<ScriptsMade> {
    const body = (request.text?.body ?? { messages: [] }) as Body
    const size = charactersOf(body) + request.choiceCount * WORK_PER_CHOICE
    return this.#options.reader.run(this.#make(body, request, plan), size, cancellation)
  }

  *#make(body: Body, request: Request, plan: Plan): LongWork<ScriptsMade> {
    const { contextTokensMax, reader } = this.#options
    const read = yield* reader.reading(body)
    const prompts = promptsOf(read, plan, reader.tokenizer)
    const longest = Math.max(...prompts.map(({ tokenCount }) => tokenCount))
    if (read.isCut || longest >= contextTokensMax) {
      const count = read.isCut ? `more than ${contextTokensMax}` : String(longest)
      const because = `The prompt has ${count} tokens; there is room for ${contextTokensMax} with the answer.`
      return { kind: 'refused', because }
    }
    yield WORK_PER_BREATH
    const answersEach = Math.max(1, Math.floor(request.choiceCount / prompts.length))
    const scripts: Script[] = []
    for (const prompt of prompts) scripts.push(...(yield* this.#answers(prompt, body, plan, answersEach)))
    return { kind: 'made', scripts }
  }

  *#answers(prompt: OnePrompt, body: Body, plan: Plan, count: number): LongWork<Script[]> {
    const { contextTokensMax, blockTokens, reader, seed } = this.#options
    const { segments, tokens, tokenCount } = prompt
    const knobs = readEngineKnobs(body)
    const material = new Material(reader.tokenizer, segments)
    yield WORK_PER_BREATH
    const names = new BlockNames(blockTokens)
    names.add(tokens)
    const outputTokensMax = Math.min(plan.outputTokensMax, contextTokensMax - tokenCount)
    const echoed = isEchoed(body) ? echoOf(reader.tokenizer, segments) : undefined
    const wish = logprobsWish(body)
    const scripts: Script[] = []
    for (let choice = 0; choice < count; choice++) {
      const rng = Rng.stream(seed + (body.seed ?? 0), `${material.hash}/${choice}`)
      const { pieces, ...answer } = yield* answering(material, rng, { ...knobs, choice, outputTokensMax })
      const seedName = `${seed + (body.seed ?? 0)}/${material.hash}/${choice}`
      const told = { tokens: answer.tokens, pieces }
      scripts.push({
        promptTokens: tokenCount,
        sharesPrompt: choice > 0,
        outputTokens: pieces.length,
        // The next turn of a conversation begins with this prompt and this answer, so both are named.
        prefixHashes: names.with(answer.tokens),
        textBetween: (from, to) => (from === 0 ? (echoed?.text ?? '') : '') + pieces.slice(from, to).join(''),
        ...(wish !== undefined && {
          logprobsBetween: makeSimulatedLogprobs({ tokenizer: reader.tokenizer, wish, seedName, answer: told, echoed }),
        }),
        finishReason: answer.finishReason,
        ...(answer.stopSequence !== undefined && { stopSequence: answer.stopSequence }),
      })
      yield WORK_PER_CHOICE
    }
    return scripts
  }
}

type Body = ChatBody | CompletionBody

const isEchoed = (body: Body): boolean => !('messages' in body) && body.echo === true

/** The prompt of a completion, as it stands in front of its answer. */
function echoOf(tokenizer: Tokenizer, segments: readonly ReadSegment[]): Tokens & { readonly text: string } {
  const tokens = segments.flatMap((segment) => segment.tokens)
  const pieces = piecesOf(tokenizer, tokens)
  return { tokens, pieces, text: pieces.join('') }
}

/** Work of one answer whose sentences are tokenized: about a tenth of a millisecond. */
const WORK_PER_CHOICE = 128

interface OnePrompt {
  readonly segments: readonly ReadSegment[]
  readonly tokens: readonly number[]
  readonly tokenCount: number
}

/** The plan's messages as one prompt; the prompts of a completion each by itself. */
function promptsOf(read: ReadPrompt, plan: Plan, tokenizer: Tokenizer): OnePrompt[] {
  if (read.kind === 'completion') return read.segments.map((segment) => onePrompt(read, [segment]))
  const kept = plan.keptSegments.flatMap((index) => read.segments[index] ?? [])
  return [onePrompt(read, withPassages(kept, plan, tokenizer))]
}

/** Retrieved passages go in front of the last question; planning has bounded their length. */
function withPassages(kept: readonly ReadSegment[], plan: Plan, tokenizer: Tokenizer): readonly ReadSegment[] {
  if (plan.passages === undefined || plan.passages.length === 0) return kept
  const text = passageText(plan.passages)
  const passages: ReadSegment = { role: 'passage', text, tokens: encodeWhole(tokenizer, text), otherTokens: 0 }
  return kept.toSpliced(
    Math.max(
      0,
      kept.findLastIndex(({ role }) => role === 'user'),
    ),
    0,
    passages,
  )
}

function onePrompt({ fixed, tail }: ReadPrompt, segments: readonly ReadSegment[]): OnePrompt {
  const tokens: number[] = []
  append(tokens, fixed)
  let otherTokens = 0
  for (const segment of segments) {
    append(tokens, segment.tokens)
    otherTokens += segment.otherTokens
  }
  append(tokens, tail)
  return { segments, tokens, tokenCount: Math.max(1, tokens.length + otherTokens) }
}

/** Tokens of a text, and what each of them spells. */
interface Tokens {
  readonly tokens: readonly number[]
  readonly pieces: readonly string[]
}

/** The sentences of a prompt, with a cache of those already tokenized. */
class Material {
  readonly hash: number
  readonly #tokenizer: Tokenizer
  readonly #answers: AnswerMaterial
  readonly #known = new Map<string, Tokens>()

  constructor(tokenizer: Tokenizer, segments: readonly ReadSegment[]) {
    this.hash = segments.reduce((hash, { text }) => (Math.imul(hash, 31) + fnv1a32(text)) | 0, 0)
    this.#tokenizer = tokenizer
    this.#answers = new AnswerMaterial(segments)
  }

  sentences(rng: Rng, choice: number): Iterator<string, never> {
    return this.#answers.sentences(rng, choice)
  }

  tokensOf(text: string): Tokens {
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const tokens = encodeWhole(this.#tokenizer, text)
    const made = { tokens, pieces: piecesOf(this.#tokenizer, tokens) }
    this.#known.set(text, made)
    return made
  }
}

interface Wanted extends EngineKnobs {
  readonly choice: number
  readonly outputTokensMax: number
}

interface Answer extends Tokens {
  readonly finishReason: 'stop' | 'length'
  readonly stopSequence?: string
}

function* answering(material: Material, rng: Rng, wanted: Wanted): LongWork<Answer> {
  const { outputTokensMax, isJson } = wanted
  const isEndless = wanted.ignoresEnd && !isJson
  const tokensMin = isEndless ? outputTokensMax : Math.min(wanted.minTokens, outputTokensMax)
  const natural = Math.max(lengthAt(rng.next()), tokensMin)
  const said = yield* saying(material.sentences(rng, wanted.choice), material, { tokens: natural, tokensMin })
  const whole = isJson ? material.tokensOf(asJson(said)) : said
  const stopped = cutAtStop(whole.pieces, wanted)
  if (stopped !== undefined && stopped.pieces.length <= outputTokensMax) {
    return { tokens: whole.tokens.slice(0, stopped.pieces.length), ...stopped, finishReason: 'stop' }
  }
  if (whole.pieces.length <= outputTokensMax && !isEndless) return { ...whole, finishReason: 'stop' }
  const [tokens, pieces] = [whole.tokens.slice(0, outputTokensMax), whole.pieces.slice(0, outputTokensMax)]
  return { tokens, pieces, finishReason: 'length' }
}

function lengthAt(quantile: number): number {
  for (let i = 1; i < LENGTHS.length; i++) {
    const [q0, t0] = LENGTHS[i - 1]!
    const [q1, t1] = LENGTHS[i]!
    if (quantile <= q1) return Math.round(t0 + ((quantile - q0) / (q1 - q0)) * (t1 - t0))
  }
  return 1
}

/** Whole sentences, at least one, with a number of tokens as near as possible to the wanted one. */
function* saying(
  sentences: Iterator<string, never>,
  material: Material,
  wanted: { readonly tokens: number; readonly tokensMin: number },
): LongWork<Tokens> {
  const tokens: number[] = []
  const pieces: string[] = []
  const add = (text: Tokens): void => {
    append(tokens, text.tokens)
    for (const piece of text.pieces) pieces.push(piece)
  }
  add(material.tokensOf(wanted.tokens < PREAMBLE_SHORT_BELOW ? PREAMBLE_SHORT : PREAMBLE))
  for (let isFirst = true; ; isFirst = false) {
    const next = material.tokensOf(` ${sentences.next().value}`)
    const lacking = wanted.tokens - tokens.length
    const isCloserWithout = next.tokens.length - lacking > lacking
    if (!isFirst && isCloserWithout && tokens.length >= wanted.tokensMin) break
    add(next)
    if (next.tokens.length >= lacking) break
    yield next.tokens.length
  }
  return { tokens, pieces }
}

const asJson = (said: Tokens): string => JSON.stringify({ simulated: true, answer: said.pieces.join('') })

/**
 * The answer up to the first stop sequence, or undefined when there is none. As in real engines, the tokens of the stop
 * sequence count although the client does not see them.
 */
function cutAtStop(
  pieces: readonly string[],
  { stops, minTokens, includesStop }: Wanted,
): { readonly pieces: string[]; readonly stopSequence: string } | undefined {
  if (stops.length === 0) return undefined
  const text = pieces.join('')
  const searchFrom = pieces.slice(0, minTokens).join('').length
  let at = Number.POSITIVE_INFINITY
  let end = 0
  let stopSequence = ''
  for (const stop of stops) {
    const found = text.indexOf(stop, Math.max(0, searchFrom - stop.length + 1))
    // Of two stop sequences that begin together, the shorter is complete first.
    if (found < 0 || found + stop.length > (end || Number.POSITIVE_INFINITY)) continue
    at = found
    end = found + stop.length
    stopSequence = stop
  }
  if (end === 0) return undefined
  const seen = includesStop ? end : at
  const kept: string[] = []
  let length = 0
  for (let i = 0; length < end; i++) {
    const piece = pieces[i] as string
    kept.push(piece.slice(0, Math.max(0, seen - length)))
    length += piece.length
  }
  return { pieces: kept, stopSequence }
}
