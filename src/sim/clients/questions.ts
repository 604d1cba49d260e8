import { Rng } from '../../base/rng.ts'
import type { Embedder } from '../../lifecycle/retrieval-ports.ts'
import type { Questions } from '../scenario/scenario-retrieval.ts'

/**
 * Questions without a language: a topic and a wording, in letters (a digit would be a number that must be equal). Two
 * wordings of one topic lie as near to each other as the scenario says; two topics have nothing to do with each other.
 */
export function drawQuestion(spec: Questions | undefined, rng: Rng, count: number): string {
  if (spec === undefined) return questionOf(count, 0, 1)
  return questionOf(rng.below(spec.count), rng.below(spec.wordings), spec.similarity)
}

function questionOf(topic: number, wording: number, similarity: number): string {
  return `topic${letters(topic)} near${letters(Math.round(similarity * 1_000))} ${signs(wording)}`
}

/** What passages are about: the word that a question about it has, too. */
export const topicWord = (topic: number): string => `topic${letters(topic)}`

/** Another wording has the same words: only what stands between them differs. */
const SIGNS = '.,;:!?-+*/'
const signs = (number: number): string => String(number).replace(/\d/g, (digit) => SIGNS[Number(digit)] ?? '')

const LETTERS = 'abcdefghij'
const letters = (number: number): string => String(number).replace(/\d/g, (digit) => LETTERS[Number(digit)] ?? '')
const numberIn = (text: string): number =>
  Number(text.replace(/[a-j]/g, (letter) => String(LETTERS.indexOf(letter))) || 0)

const DIMENSIONS = 64

/** Vectors as the questions say they lie; the same for the same text, in every run. */
export function vectorOf(text: string): Float32Array {
  const [, topic = text, near = '', wording = ''] = /^topic([a-j]+)(?: near([a-j]+) (\S+))?/.exec(text) ?? []
  const centre = randomUnit(`topic/${topic}`)
  if (wording === '') return centre
  // cos(√s·t + √(1−s)·a, √s·t + √(1−s)·b) = s where t, a and b have nothing in common.
  const similarity = numberIn(near) / 1_000
  const own = randomUnit(`wording/${topic}/${wording}`)
  return unit(centre.map((part, i) => Math.sqrt(similarity) * part + Math.sqrt(1 - similarity) * (own[i] as number)))
}

function randomUnit(name: string): Float32Array {
  const rng = Rng.stream(1, name)
  return unit(Float32Array.from({ length: DIMENSIONS }, () => rng.next() + rng.next() + rng.next() - 1.5))
}

function unit(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector) || 1
  return vector.map((part) => part / length)
}

/** The embedder of simulated worlds, as fast as whoever calls it lets it be. */
export const QUESTION_EMBEDDER: Embedder = {
  name: 'simulated',
  dimensions: DIMENSIONS,
  embed: (texts) => Promise.resolve(texts.map(vectorOf)),
  close: () => Promise.resolve(),
}
