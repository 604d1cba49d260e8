import type { StepCoefficients } from '../../src/engine/gpu-profile.ts'
import { type StepLoad, stepUs } from '../../src/engine/step-time.ts'

/** One sequence's part of a step. */
export interface StepMember {
  readonly tokens: number
  /** Tokens known (decoding) or computed before (reading a chunk). */
  readonly contextTokens: number
  readonly isDecoding: boolean
}

/** The split of one step as the formula stands, member by member, scaled to the step's time. */
export function naiveShares(c: StepCoefficients, members: readonly StepMember[], us: number): number[] {
  const raw = members.map((member) => rawShare(c, members, member))
  const sum = raw.reduce((total, share) => total + share, 0)
  return raw.map((share) => (sum > 0 ? (share * us) / sum : 0))
}

function rawShare(c: StepCoefficients, members: readonly StepMember[], member: StepMember): number {
  const decoding = members.filter(({ isDecoding }) => isDecoding).length
  const { tokens: q, contextTokens: x, isDecoding } = member
  if (c.kind === 'reference') {
    const speedUp = 1 - c.batchShare + c.batchShare * Math.sqrt(decoding)
    return isDecoding ? 1e6 / (c.decodeTokensPerSecond * speedUp) : (1e6 * q) / c.prefillTokensPerSecond
  }
  const n = members.reduce((sum, { tokens }) => sum + tokens, 0)
  const knee = (c.weightsUs ** c.kneeSharpness + (c.computeUsPerToken * n) ** c.kneeSharpness) ** (1 / c.kneeSharpness)
  const fixed = c.weightsUs + c.lmHeadUs + c.hostUs + c.allReduceBaseUs
  const grown = Math.round(knee) + c.lmHeadUs + c.hostUs + c.allReduceBaseUs + c.allReduceUsPerToken * n - fixed
  const both = fixed / members.length + (grown * q) / n
  if (isDecoding) return both + c.decodeBaseUs / decoding + c.decodeUsPerSequence + c.kvReadUsPerToken * x
  const reading = members.length - decoding
  const pairs = (c.attentionUsPerPair * q * q) / 2 + c.contextAttentionUsPerPair * q * x
  return both + c.prefillBaseUs / reading + pairs
}

export function loadOf(members: readonly StepMember[]): StepLoad {
  const decoding = members.filter(({ isDecoding }) => isDecoding)
  const reading = members.filter(({ isDecoding }) => !isDecoding)
  const sum = (of: readonly StepMember[], term: (member: StepMember) => number): number =>
    of.reduce((total, member) => total + term(member), 0)
  return {
    decodeCount: decoding.length,
    decodeTokens: sum(decoding, ({ tokens }) => tokens),
    contextSum: sum(decoding, ({ contextTokens }) => contextTokens),
    contextMax: Math.max(0, ...decoding.map(({ contextTokens }) => contextTokens)),
    prefillTokens: sum(reading, ({ tokens }) => tokens),
    chunkPairs: sum(reading, ({ tokens }) => (tokens * tokens) / 2),
    contextPairs: sum(reading, ({ tokens, contextTokens }) => tokens * contextTokens),
  }
}

/** Shapley values of a step's time, by all subsets: for ten members a thousand steps are timed. */
export function shapleyShares(c: StepCoefficients, members: readonly StepMember[]): number[] {
  const count = members.length
  const timeOf = Array.from({ length: 2 ** count }, (_, set) => {
    const some = members.filter((_member, i) => (set & (1 << i)) !== 0)
    return some.length === 0 ? 0 : stepUs(c, loadOf(some))
  })
  const factorial = (k: number): number => (k <= 1 ? 1 : k * factorial(k - 1))
  return members.map((_, i) => {
    let share = 0
    for (let set = 0; set < 2 ** count; set++) {
      if ((set & (1 << i)) !== 0) continue
      const size = sizeOf(set)
      const orders = (factorial(size) * factorial(count - size - 1)) / factorial(count)
      share += orders * ((timeOf[set | (1 << i)] as number) - (timeOf[set] as number))
    }
    return share
  })
}

function sizeOf(set: number): number {
  let size = 0
  for (let rest = set; rest > 0; rest >>= 1) size += rest & 1
  return size
}
