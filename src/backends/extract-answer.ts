import type { Rng } from '../base/rng.ts'
import type { Segment } from '../domain/request.ts'

/**
 * The text of an answer from an engine without a model: sentences of the prompt and of retrieved passages, first those
 * that share most words with the last question. When these run out before the answer is long enough, the same sentences
 * follow in another order, mixed with a few remarks that the answer is simulated. So a person can read an answer and
 * check it against its sources.
 *
 * Only whole sentences come from here; the caller decides where an answer ends.
 */
export interface SourceText {
  readonly role: Segment['role']
  readonly text: string
}

/** Longest source that is searched, counted from its end: searching more would delay other requests. */
export const SOURCE_CHARACTERS_MAX = 20_000

/** A longer line without a full stop may be a page of code; it is split at pauses. */
const SENTENCE_CHARACTERS_MAX = 300

const REMARKS: readonly string[] = [
  'No model has been loaded: the words are taken from the prompt.',
  'Only the timing of this answer is meant to be true to life.',
  'Each token arrives when the GPU of the chosen profile would have made it.',
  'A longer prompt would have given this answer more to say.',
  'The length of this answer is drawn from a trace of real conversations.',
  'Ask again with the same seed, and the same words will come back.',
  'What has been said so far is all that the prompt contains.',
  'A real engine would have something new to add here.',
  'Other requests in the same batch slow this one down, as they would on a GPU.',
  'The prompt was read in chunks, and what had been read before came from the cache.',
]

const NO_TEXT = 'The prompt has no text to answer from.'

/** The sentences of a prompt, best first. Made once per prompt; every choice then draws its answer from them. */
export class AnswerMaterial {
  readonly #sentences: readonly Ranked[]

  constructor(source: readonly SourceText[]) {
    const asked = new Set(
      wordsOf(source.findLast(({ role }) => role === 'user')?.text.slice(-SOURCE_CHARACTERS_MAX) ?? ''),
    )
    this.#sentences = sentencesOf(lastCharacters(source)).map((text) => ({ text, score: scoreOf(text, asked) }))
  }

  /**
   * Sentences without end. The first choice keeps the order of the source; other choices change it, so that they
   * differ.
   */
  *sentences(rng: Rng, choice: number): Generator<string, never, undefined> {
    const ranked = this.#sentences.map(({ text, score }) => ({ text, score: score + (choice === 0 ? 0 : rng.next()) }))
    ranked.sort((a, b) => b.score - a.score)
    for (const { text } of ranked) yield text
    if (ranked.length === 0) yield NO_TEXT
    let last = ranked.at(-1)?.text
    const pool = [...ranked.map(({ text }) => text), ...REMARKS]
    for (;;) {
      shuffle(pool, rng)
      for (const text of pool) {
        if (text === last) continue
        last = text
        yield text
      }
    }
  }
}

interface Ranked {
  readonly text: string
  readonly score: number
}

/** Number of shared words; questions come after sentences that might answer them. */
function scoreOf(sentence: string, asked: ReadonlySet<string>): number {
  const shared = new Set(wordsOf(sentence).filter((word) => asked.has(word))).size
  return isQuestion(sentence) ? shared - 1_000 : shared
}

const isQuestion = (sentence: string): boolean => /[?？]["'”’)]*$/u.test(sentence)

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? []

function lastCharacters(source: readonly SourceText[]): string {
  const texts: string[] = []
  let left = SOURCE_CHARACTERS_MAX
  for (let i = source.length - 1; i >= 0 && left > 0; i--) {
    const text = (source[i] as SourceText).text
    texts.unshift(text.slice(-left))
    left -= text.length
  }
  return texts.join('\n')
}

/** Sentences without list marks, on one line, each with a full stop, so that they can follow each other. */
export function sentencesOf(text: string): string[] {
  const seen = new Set<string>()
  for (const line of text.toWellFormed().split(/[\r\n]+/)) {
    const plain = line.replace(/^[\s>#*•–-]+(?=\S)/u, '').replaceAll(/\s+/gu, ' ')
    for (const part of plain.split(/(?<=[.!?…]["'”’)]?) |(?<=[。！？])/u)) {
      for (const sentence of brokenUp(part.trim())) if (/[\p{L}\p{N}]/u.test(sentence)) seen.add(ended(sentence))
    }
  }
  return [...seen]
}

function brokenUp(text: string): string[] {
  const parts: string[] = []
  let rest = text
  while (rest.length > SENTENCE_CHARACTERS_MAX) {
    const head = rest.slice(0, SENTENCE_CHARACTERS_MAX)
    const pause = Math.max(
      head.lastIndexOf(', '),
      head.lastIndexOf('; '),
      head.lastIndexOf(': '),
      head.lastIndexOf('，'),
    )
    const blank = head.lastIndexOf(' ')
    const cut = pause > SENTENCE_CHARACTERS_MAX / 3 ? pause + 1 : blank > 0 ? blank : wholeCharacters(head)
    parts.push(rest.slice(0, cut).trim())
    rest = rest.slice(cut).trim()
  }
  parts.push(rest)
  return parts
}

/** Does not cut inside a surrogate pair. */
function wholeCharacters(head: string): number {
  const code = head.charCodeAt(head.length - 1)
  return code >= 0xd800 && code <= 0xdbff ? head.length - 1 : head.length
}

const ended = (sentence: string): string => (/[\p{L}\p{N}]$/u.test(sentence) ? `${sentence}.` : sentence)

function shuffle(items: string[], rng: Rng): void {
  for (let i = items.length - 1; i > 0; i--) {
    const j = rng.below(i + 1)
    const moved = items[i] as string
    items[i] = items[j] as string
    items[j] = moved
  }
}
