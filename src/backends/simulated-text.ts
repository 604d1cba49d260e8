import { fnv1a32, Rng } from '../base/rng.ts'
import type { Plan } from '../domain/plan.ts'
import type { Request } from '../domain/request.ts'
import { passageText } from '../wire/passage-text.ts'
import { chatTexts, completionTexts, type SegmentText } from '../wire/prompt-text.ts'
import type { ChatBody, CompletionBody } from '../wire/schemas.ts'
import type { Script, Scripts } from './simulated.ts'

/**
 * What does an engine without a model say? It answers extractively: the sentences of the prompt (and of retrieved
 * passages) that share most words with the last question, after a line that says that this is simulated. So what a
 * person sees makes sense, and an answer can be checked against its sources. The same seed and prompt give the same
 * answer; the client's own `seed` joins in.
 */
export interface Tokenizer {
  encode(text: string): number[]
  decode(tokens: readonly number[]): string
}

export interface SimulatedTextOptions {
  readonly tokenizer: Tokenizer
  readonly seed: number
  /** Tokens that one prefix hash names; the engine's block size. */
  readonly blockTokens: number
}

const PREAMBLE = 'Simulated answer, taken from your own words: '

/** Lengths as in a public production trace (Azure 2023, conversations): median 129, tenth at 424, hundredth at 601. */
const LENGTHS: ReadonlyArray<readonly [quantile: number, tokens: number]> = [
  [0, 8],
  [0.5, 129],
  [0.9, 424],
  [0.99, 601],
  [1, 800],
]

/** Longest source text that is searched for sentences: beyond it the search would be felt by other requests. */
const SOURCE_CHARACTERS_MAX = 20_000

/** A prompt as the engine takes it: its tokens counted, its full blocks named. */
interface Prompt {
  readonly plan: Plan
  readonly number: number
  readonly segments: readonly SegmentText[]
  readonly tokens: number
  readonly prefixHashes: readonly number[]
}

export class SimulatedText implements Scripts {
  readonly #options: SimulatedTextOptions
  /** The choices of one prompt are scripted one after the other, and encoding it costs more than all the rest. */
  #lastPrompt: Prompt | undefined

  constructor(options: SimulatedTextOptions) {
    this.#options = options
  }

  scriptFor(request: Request, plan: Plan, choice: number): Script {
    const { tokenizer, seed } = this.#options
    const { segments, tokens, prefixHashes } = this.#promptOf(request, plan, choice)
    const body = (request.text?.body ?? {}) as ChatBody
    const source = segments.map((segment) => segment.text).join('\n')
    const rng = Rng.stream(seed + (body.seed ?? 0), `${fnv1a32(source)}/${choice}`)
    const whole = say(segments, rng, lengthAt(rng.next()), body.response_format?.type === 'json_object')
    const answer = tokenizer.encode(cutAtStop(whole, body.stop))
    const ids = answer.slice(0, plan.outputTokensMax)
    const isCut = ids.length < answer.length
    // An answer that a stop sequence leaves without text still took the engine one token to find out.
    const pieces = ids.length === 0 ? [''] : piecesOf(tokenizer, ids)
    return {
      promptTokens: tokens,
      outputTokens: pieces.length,
      prefixHashes,
      textBetween: (from, to) => pieces.slice(from, to).join(''),
      finishReason: isCut ? 'length' : 'stop',
    }
  }

  #promptOf(request: Request, plan: Plan, choice: number): Prompt {
    const number = promptNumber(request, choice)
    const last = this.#lastPrompt
    if (last?.plan === plan && last.number === number) return last
    const { tokenizer, blockTokens } = this.#options
    const segments = keptTexts(request, plan, number)
    const ids: number[] = []
    let otherTokens = 0
    for (const segment of segments) {
      for (const id of tokenizer.encode(`<|${segment.role}|>${segment.text}`)) ids.push(id)
      otherTokens += segment.otherTokens
    }
    const tokens = Math.max(1, ids.length + otherTokens)
    this.#lastPrompt = { plan, number, segments, tokens, prefixHashes: blockHashes(ids, blockTokens) }
    return this.#lastPrompt
  }
}

/** Of a list of prompts, as OpenAI orders them: all choices of the first prompt, then all of the second. */
function promptNumber(request: Request, choice: number): number {
  if (request.kind === 'chat') return 0
  return Math.floor((choice * request.segments.length) / request.choiceCount)
}

function keptTexts(request: Request, plan: Plan, number: number): SegmentText[] {
  const body = (request.text?.body ?? { messages: [] }) as ChatBody | CompletionBody
  if (!('messages' in body)) return completionTexts(body.prompt).slice(number, number + 1)
  const all = chatTexts(body)
  const kept = plan.keptSegments.flatMap((index) => all[index] ?? [])
  if (plan.passages === undefined || plan.passages.length === 0) return kept
  const passages: SegmentText = { role: 'passage', text: passageText(plan.passages), otherTokens: 0 }
  return kept.toSpliced(
    kept.findLastIndex(({ role }) => role === 'user'),
    0,
    passages,
  )
}

function lengthAt(quantile: number): number {
  for (let i = 1; i < LENGTHS.length; i++) {
    const [q0, t0] = LENGTHS[i - 1]!
    const [q1, t1] = LENGTHS[i]!
    if (quantile <= q1) return Math.round(t0 + ((quantile - q0) / (q1 - q0)) * (t1 - t0))
  }
  return 1
}

/** Sentences by how many of the question's words they share, until about `tokens` tokens are said. */
function say(segments: readonly SegmentText[], rng: Rng, tokens: number, asJson: boolean): string {
  const question = segments.findLast((segment) => segment.role === 'user')?.text ?? ''
  const source = segments
    .map((segment) => segment.text)
    .join('\n')
    .slice(-SOURCE_CHARACTERS_MAX)
  const asked = new Set(wordsOf(question))
  const sentences = source.split(/(?<=[.!?])\s+|\n+/).filter((sentence) => sentence.trim() !== '')
  const scored = sentences
    .map((text, order) => ({ text: text.trim(), order, score: wordsOf(text).filter((word) => asked.has(word)).length }))
    .sort((a, b) => b.score - a.score || a.order - b.order)
  // About four characters a token; the tokenizer has the last word.
  let left = tokens * 4 - PREAMBLE.length
  const said: string[] = []
  for (let i = 0; left > 0 && scored.length > 0 && said.length < 400; i++) {
    const pick = i < scored.length ? scored[i]! : scored[rng.below(scored.length)]!
    said.push(pick.text)
    left -= pick.text.length + 1
  }
  const text = PREAMBLE + (said.join(' ') || '(your prompt has no text).')
  if (asJson) return JSON.stringify({ simulated: true, answer: startOf(text, Math.max(8, tokens * 3)) })
  return startOf(text, Math.max(8, tokens * 4))
}

/** Half of a surrogate pair is no character: what is cut in two is left out. */
const startOf = (text: string, length: number): string => text.slice(0, length).replace(/[\uD800-\uDBFF]$/, '')

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []

function cutAtStop(whole: string, stop: ChatBody['stop']): string {
  let text = whole
  for (const mark of typeof stop === 'string' ? [stop] : (stop ?? [])) {
    const at = mark === '' ? -1 : text.indexOf(mark)
    if (at >= 0) text = text.slice(0, at)
  }
  return text
}

/** One string per token. A character that spans several tokens comes out with its last one, or not at all. */
function piecesOf(tokenizer: Tokenizer, ids: readonly number[]): string[] {
  const pieces: string[] = []
  let from = 0
  for (let to = 1; to <= ids.length; to++) {
    const piece = tokenizer.decode(ids.slice(from, to))
    const isBroken = piece.endsWith('\uFFFD') && to - from < 8
    pieces.push(isBroken ? '' : piece)
    if (!isBroken) from = to
  }
  return pieces
}

/**
 * Each full block is named by its tokens and by the name of the block before it. Two 32-bit chains make a 52-bit name:
 * with forty thousand blocks a single one would mistake one block for another now and then.
 */
function blockHashes(ids: readonly number[], blockTokens: number): number[] {
  const hashes: number[] = []
  let high = 0x811c9dc5
  let low = 0x9e3779b1
  for (let i = 0; i < ids.length; i++) {
    high = Math.imul(high ^ ids[i]!, 0x01000193) ^ (high >>> 15)
    low = Math.imul(low ^ ids[i]!, 0x85ebca6b) ^ (low >>> 13)
    if ((i + 1) % blockTokens === 0) hashes.push((high >>> 0) * 2 ** 20 + (low >>> 12))
  }
  return hashes
}
