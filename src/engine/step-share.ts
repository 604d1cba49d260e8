import { assert } from '../base/assert.ts'
import type { EngineTime } from '../domain/engine-time.ts'
import type { StepCoefficients } from './gpu-profile.ts'
import type { Sequence } from './sequence.ts'
import type { SequenceTime } from './sequence-time.ts'
import { chunkAloneUs, type DecodeAlone, decodeAloneOf, decodeAloneUs, prefixSavedUs } from './share-alone.ts'
import { chunkShareUs, type ShareTerms, shareTermsOf } from './share-terms.ts'
import { type StepLoad, type StepPace, type StepTime, TICKS_PER_US } from './step-time.ts'
import type { TimeAccount } from './time-account.ts'

/**
 * Whose is a step's time?
 *
 * A step is a cost that its sequences share: most of it (streaming the weights) is there as soon as one of them is. The
 * fair split of a shared cost is the Shapley value: what a sequence adds to the step, averaged over all orders in which
 * the sequences could have joined (Shapley 1953; for costs of shared facilities Littlechild and Owen 1973). It needs
 * 2^N evaluations of the step's time. The step-time model (`step-time.ts`) is a sum, Shapley values of sums add up, and
 * each summand but one has a value in closed form: what is there once is split equally, what is linear belongs to the
 * sequence whose work it is. The knee between weights and compute is the exception; what it adds to the weights is split
 * by tokens, which is exact where either of the two rules. `share-terms.ts` has the formula.
 *
 *     share_i = F/N + (G(n) − F)·q_i/n + [decoding](d0/D + s + k·x_i) + [prefilling](p0/P + a·q²/2 + b·q·x)
 *
 * Where a floor of the host or one sequence's serial attention makes the step longer than the sum, all shares are scaled
 * pro rata; so Σ share_i is the step's time, always.
 *
 * **Running sums.** A decoding sequence's context grows by one a step: x_i = offset_i + turn. So its share over any
 * number of steps follows from three sums that are the same for all of them,
 *
 *     A = Σ (F/N + (G − F)/n + d0/D + s)     B = Σ k     C = Σ k·turn        share_i = ΔA + offset_i·ΔB + ΔC
 *
 * and a sequence costs a few additions when it joins and when it leaves, whatever happened between. A stretch of leaped
 * steps adds to the sums in closed form. A step is charged when it begins, to those who are in it then: a sequence that is
 * aborted in the middle of a step pays its share of all of it.
 *
 * It does not know tenants or money. Law L15 stands on it: `assertWhole` compares Σ shares with the time of all steps.
 *
 * Example, `h100-llama-8b`: two sequences decode at contexts of 1,000 and 3,000. The step takes 6.4 ms; the weights are
 * half each, and the second pays three times as much for reading keys and values.
 */

/** Ratios of two steps that differ by less are one ratio: the rounding of a step to ticks is larger. */
const SAME_RATIO = 1e-6

export class StepShares implements TimeAccount {
  readonly #coefficients: StepCoefficients
  readonly #stepTime: StepTime
  readonly #alone: DecodeAlone
  /** Each member gains its own number of tokens a step: the sums do not apply. */
  readonly #isBursty: boolean
  readonly #draftUsAlone: number
  #a = 0
  #b = 0
  #c = 0
  /** Σ step time, and Σ step time · turn, of the steps with decodes. */
  #t = 0
  #tt = 0
  #turn = 0
  #step = 0
  /** The running step, for those who ask in its middle. */
  #runningUs = 0
  #runningA = 0
  #runningB = 0
  #runningTurn = 0
  #totalUs = 0
  #endedUs = 0

  constructor(
    coefficients: StepCoefficients,
    stepTime: StepTime,
    options: { readonly isBursty: boolean; readonly draftUsAlone: number },
  ) {
    this.#coefficients = coefficients
    this.#stepTime = stepTime
    this.#isBursty = options.isBursty
    this.#draftUsAlone = options.draftUsAlone
    this.#alone = decodeAloneOf(coefficients, stepTime)
  }

  /** Time of all steps that have begun. */
  get totalUs(): number {
    return this.#totalUs
  }

  /** A planned step begins: chunks are charged one by one, decodes through the sums. */
  begin(plan: StepLoad & { readonly chunks: readonly Sequence[] }, members: Iterable<Sequence>, ticks: number): void {
    const us = ticks / TICKS_PER_US
    const terms = shareTermsOf(this.#coefficients, this.#stepTime, plan)
    const ratio = terms.sumUs > 0 ? us / terms.sumUs : 0
    this.#step++
    this.#totalUs += us
    this.#runningUs = us
    this.#runningA = 0
    this.#runningB = 0
    for (const sequence of plan.chunks) this.#chargeChunk(sequence, terms, ratio, us)
    if (plan.decodeCount === 0) return
    const a = ratio * terms.decodeUs
    const b = ratio * terms.kvReadUs
    if (this.#isBursty) this.#chargeMembers(members, a, b, us)
    else this.#add(1, a, b, us, 0)
    this.#runningA = a
    this.#runningB = b
    this.#runningTurn = this.#turn - 1
  }

  /** `steps` further steps of a stretch have begun, of which the first takes the pace's ticks and one growth more. */
  leap(steps: number, load: { readonly count: number; readonly contextSum: number }, pace: StepPace): void {
    if (steps === 0) return
    const { count } = load
    const decodeUs = this.#steadyTerms(count)
    const kvReadUs = this.#coefficients.kind === 'roofline' ? this.#coefficients.kvReadUsPerToken : 0
    const firstUs = (pace.ticks + pace.ticksGrowth) / TICKS_PER_US
    const growthUs = pace.ticksGrowth / TICKS_PER_US
    const firstSum = count * decodeUs + kvReadUs * (load.contextSum + count)
    const sumGrowth = kvReadUs * count
    const totalUs = steps * firstUs + (growthUs * steps * (steps - 1)) / 2
    this.#totalUs += totalUs
    this.#step += steps
    const firstRatio = firstUs / firstSum
    const lastRatio = (firstUs + growthUs * (steps - 1)) / (firstSum + sumGrowth * (steps - 1))
    if (Math.abs(firstRatio - lastRatio) <= SAME_RATIO * firstRatio) {
      const ratio = totalUs / (steps * firstSum + (sumGrowth * steps * (steps - 1)) / 2)
      this.#add(steps, ratio * decodeUs, ratio * kvReadUs, firstUs, growthUs)
      this.#runningA = ratio * decodeUs
      this.#runningB = ratio * kvReadUs
    } else {
      // A floor or serial attention rules, and its part changes from step to step.
      for (let i = 0; i < steps; i++) {
        const us = firstUs + growthUs * i
        const ratio = us / (firstSum + sumGrowth * i)
        this.#add(1, ratio * decodeUs, ratio * kvReadUs, us, 0)
        this.#runningA = ratio * decodeUs
        this.#runningB = ratio * kvReadUs
      }
    }
    this.#runningUs = firstUs + growthUs * (steps - 1)
    this.#runningTurn = this.#turn - 1
  }

  /** A sequence joins the decoding ones; the next step is its first. */
  join({ time, knownTokens }: Sequence): void {
    time.offset = knownTokens - this.#turn
    this.#mark(time)
  }

  #mark(time: SequenceTime): void {
    time.joinedTurn = this.#turn
    time.markA = this.#a
    time.markB = this.#b
    time.markC = this.#c
    time.markT = this.#t
    time.markTT = this.#tt
  }

  /** A sequence leaves the decoding ones, for whatever reason. */
  leave({ time }: Sequence): void {
    if (this.#isBursty) return
    time.decodeUs += this.#decodedUs(time)
    time.aloneUs += this.#decodedAloneUs(time)
    time.kvTokenUs += this.#heldTokenUs(time)
    this.#mark(time)
  }

  /** A sequence has ended: it is in no place any more. */
  ended({ time }: Sequence): void {
    this.#endedUs += time.prefillUs + time.decodeUs + time.againUs
  }

  /** What a sequence has come to, when `leftRatio` of the running step is still to come. */
  timeOf(sequence: Sequence, leftRatio: number): EngineTime {
    const { time } = sequence
    const isDecoding = sequence.place === 'decoding' && !this.#isBursty
    const isInChunk = time.chunkStep === this.#step
    let { prefillUs, againUs, decodeUs, aloneUs, kvTokenUs } = time
    if (isDecoding) {
      decodeUs += this.#decodedUs(time)
      aloneUs += this.#decodedAloneUs(time)
      kvTokenUs += this.#heldTokenUs(time)
    }
    if (leftRatio > 0 && isInChunk) {
      prefillUs -= leftRatio * time.chunkUs
      againUs -= leftRatio * time.chunkAgainUs
      kvTokenUs -= leftRatio * time.chunkKvTokenUs
    } else if (leftRatio > 0 && isDecoding && this.#turn > time.joinedTurn) {
      const contextTokens = time.offset + this.#runningTurn
      decodeUs -= leftRatio * (this.#runningA + this.#runningB * contextTokens)
      kvTokenUs -= leftRatio * this.#runningUs * contextTokens
    }
    const savedUs = prefixSavedUs(this.#coefficients, Math.max(0, sequence.cachedTokens))
    return { prefillUs, decodeUs, againUs, aloneUs, prefixSavedUs: savedUs, kvTokenUs }
  }

  /** Σ shares is the time of all steps, up to what adding many numbers rounds off. */
  assertWhole(sequences: Iterable<Sequence>): void {
    let us = this.#endedUs
    for (const sequence of sequences) {
      const { prefillUs, decodeUs, againUs } = this.timeOf(sequence, 0)
      us += prefillUs + decodeUs + againUs
    }
    const isWhole = Math.abs(us - this.#totalUs) <= 1e-6 * Math.max(1, this.#totalUs)
    assert(isWhole, `shares are ${us} µs of steps that took ${this.#totalUs} µs (L15)`)
  }

  #chargeChunk(sequence: Sequence, terms: ShareTerms, ratio: number, stepUs: number): void {
    const { time, plannedTokens: tokens } = sequence
    const contextTokens = sequence.computedTokens - tokens
    const us = ratio * chunkShareUs(this.#coefficients, terms, tokens, contextTokens)
    const againTokens = Math.min(tokens, Math.max(0, sequence.reachedTokens - contextTokens))
    const againUs = (us * againTokens) / tokens
    time.chunkStep = this.#step
    time.chunkUs = us - againUs
    time.chunkAgainUs = againUs
    time.chunkKvTokenUs = stepUs * sequence.computedTokens
    time.prefillUs += time.chunkUs
    time.againUs += againUs
    time.kvTokenUs += time.chunkKvTokenUs
    // What is read again would not have been thrown away if the sequence had been alone.
    if (againTokens < tokens) {
      time.aloneUs += chunkAloneUs(
        this.#coefficients,
        this.#stepTime,
        tokens - againTokens,
        contextTokens + againTokens,
      )
    }
  }

  #chargeMembers(members: Iterable<Sequence>, a: number, b: number, us: number): void {
    for (const { time, knownTokens } of members) {
      time.decodeUs += a + b * knownTokens
      time.kvTokenUs += us * knownTokens
      time.aloneUs += decodeAloneUs(this.#alone, knownTokens, 1) + this.#draftUsAlone
    }
  }

  #add(steps: number, a: number, b: number, firstUs: number, growthUs: number): void {
    const turn = this.#turn
    const pairs = (steps * (steps - 1)) / 2
    const squares = (pairs * (2 * steps - 1)) / 3
    this.#a += steps * a
    this.#b += steps * b
    this.#c += b * (steps * turn + pairs)
    this.#t += steps * firstUs + growthUs * pairs
    this.#tt += turn * (steps * firstUs + growthUs * pairs) + firstUs * pairs + growthUs * squares
    this.#turn += steps
  }

  /** Of a step of so many decodes and nothing else, what each pays beside its context. */
  #steadyTerms(count: number): number {
    STEADY.decodeCount = count
    STEADY.decodeTokens = count
    return shareTermsOf(this.#coefficients, this.#stepTime, STEADY).decodeUs
  }

  #decodedUs(time: SequenceTime): number {
    return this.#a - time.markA + time.offset * (this.#b - time.markB) + (this.#c - time.markC)
  }

  #heldTokenUs(time: SequenceTime): number {
    return time.offset * (this.#t - time.markT) + (this.#tt - time.markTT)
  }

  #decodedAloneUs(time: SequenceTime): number {
    return decodeAloneUs(this.#alone, time.offset + time.joinedTurn, this.#turn - time.joinedTurn)
  }
}

const STEADY = {
  decodeCount: 0,
  decodeTokens: 0,
  contextSum: 0,
  contextMax: 0,
  prefillTokens: 0,
  chunkPairs: 0,
  contextPairs: 0,
  chunks: [],
}
