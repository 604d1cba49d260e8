import { Rng } from '../../base/rng.ts'
import type { Embedder } from '../../lifecycle/retrieval-ports.ts'
import type { Questions } from '../scenario/scenario-retrieval.ts'

/**
 * Questions without a language: a topic and a wording, in letters (the answer cache would compare digits as numbers).
 * Two wordings of one topic have the similarity that the scenario sets; two topics have none.
 */
export function drawQuestion(spec: Questions | undefined, rng: Rng, count: number): string {
  if (spec === undefined) return questionOf(count, 0, 1)
  return questionOf(rng.below(spec.count), rng.below(spec.wordings), spec.similarity)
}

function questionOf(topic: number, wording: number, similarity: number): string {
  return `topic${letters(topic)} near${letters(Math.round(similarity * 1_000))} ${signs(wording)}`
}

/** The word of a topic, which passages and questions about it contain. */
export const topicWord = (topic: number): string => `topic${letters(topic)}`

/** Signs between the words: another wording has the same words and other signs. */
const SIGNS = '.,;:!?-+*/'
const signs = (number: number): string => String(number).replace(/\d/g, (digit) => SIGNS[Number(digit)] ?? '')

const LETTERS = 'abcdefghij'
const letters = (number: number): string => String(number).replace(/\d/g, (digit) => LETTERS[Number(digit)] ?? '')
const numberIn = (text: string): number =>
  Number(text.replace(/[a-j]/g, (letter) => String(LETTERS.indexOf(letter))) || 0)

const DIMENSIONS = 64

/** Vectors with the similarities of the questions; the same for the same text, in every run. */
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

/** The embedder of simulations; its caller adds the latency. */
export const QUESTION_EMBEDDER: Embedder = {
  name: 'simulated',
  dimensions: DIMENSIONS,
  embed: (texts) => Promise.resolve(texts.map(vectorOf)),
  close: () => Promise.resolve(),
}
