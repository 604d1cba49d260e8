import { unitOf } from '../base/rng.ts'
import { type Alternative, type LogprobsWish, simulatedLogprobs, type TokenChance } from '../wire/logprobs.ts'
import type { Tokenizer } from './tokenizer.ts'

/**
 * Log probabilities of a simulated answer, for clients that send whole sets of parameters: made up from the seed, the
 * same for the same request, and marked as simulated. They have the form of true ones: the chosen token is the likeliest
 * (0.4 … 0.995), each alternative is less likely than the one before, and together they have no more than what is left.
 */
export interface ToldTokens {
  readonly tokens: readonly number[]
  /** What each token adds to the text; empty behind a stop sequence. */
  readonly pieces: readonly string[]
}

export interface SimulatedLogprobsOptions {
  readonly tokenizer: Tokenizer
  readonly wish: LogprobsWish
  /** Names the answer: the same name, the same numbers. */
  readonly seedName: string
  readonly answer: ToldTokens
  /** The prompt, where it stands in front of the answer. */
  readonly echoed: ToldTokens | undefined
}

const CHOSEN_MIN = 0.4
const CHOSEN_RANGE = 0.595
/** Of what the likelier ones leave, an alternative has this share: the first has at most 0.36. */
const ALTERNATIVE_SHARE = 0.6
/** Ids are looked for here; every vocabulary in use has as many. */
const VOCABULARY = 50_000
/** Neighbouring ids are words of one kind; a large step leads elsewhere. */
const ID_STEP = 7_919
/** Ids that are looked at for each alternative: a vocabulary may have gaps. */
const LOOKS_PER_ALTERNATIVE = 8

/** The log probabilities of the answer's tokens [from, to), in the shape that the client wants. */
export function makeSimulatedLogprobs(options: SimulatedLogprobsOptions): (from: number, to: number) => object {
  const { wish, answer, echoed } = options
  const before = echoed?.tokens.length ?? 0
  const told = {
    tokens: [...(echoed?.tokens ?? []), ...answer.tokens],
    pieces: [...(echoed?.pieces ?? []), ...answer.pieces],
  }
  const offsets = offsetsOf(told.pieces)
  const visible = before + answer.pieces.findLastIndex((piece) => piece !== '') + 1
  return (from, to) => {
    const first = from === 0 ? 0 : before + from
    const chances: TokenChance[] = []
    for (let i = first; i < Math.min(before + to, visible); i++) chances.push(chanceOf(options, told, offsets, i))
    return simulatedLogprobs(wish, chances)
  }
}

function offsetsOf(pieces: readonly string[]): number[] {
  let offset = 0
  return pieces.map((piece) => {
    const at = offset
    for (const _ of piece) offset++
    return at
  })
}

function chanceOf(
  { tokenizer, wish, seedName, echoed }: SimulatedLogprobsOptions,
  { tokens, pieces }: ToldTokens,
  offsets: readonly number[],
  i: number,
): TokenChance {
  const id = tokens[i] as number
  const bytes = [...tokenizer.bytesOf(id)]
  const offset = offsets[i] as number
  const token = pieces[i] || spelled(bytes)
  if (i === 0 && echoed !== undefined) return { token, bytes, logprob: undefined, alternatives: [], offset }
  const probability = CHOSEN_MIN + CHOSEN_RANGE * unitOf(`${seedName}/${i}/${id}`)
  const chosen: Alternative = { token, bytes, logprob: Math.log(probability) }
  const alternatives = wish.topCount === 0 ? [] : [chosen]
  let left = 1 - probability
  let next = Math.floor(unitOf(`${seedName}/${i}`) * VOCABULARY)
  for (let look = 0; look < LOOKS_PER_ALTERNATIVE * wish.topCount && alternatives.length < wish.topCount; look++) {
    next = (next + ID_STEP) % VOCABULARY
    if (next === id || !tokenizer.has(next)) continue
    const other = [...tokenizer.bytesOf(next)]
    alternatives.push({ token: spelled(other), bytes: other, logprob: Math.log(left * ALTERNATIVE_SHARE) })
    left *= 1 - ALTERNATIVE_SHARE
  }
  return { ...chosen, alternatives, offset }
}

/** Bytes as text; where they are a part of a character only, as OpenAI spells them: `bytes:\xf0\x9f`. */
function spelled(bytes: readonly number[]): string {
  try {
    return STRICT.decode(Uint8Array.from(bytes))
  } catch {
    return `bytes:${bytes.map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}`
  }
}

const STRICT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
