import { assert } from '../../base/assert.ts'
import { QuantileSketch } from '../../base/quantile.ts'
import { Recency, type RecencyItem } from '../../base/recency.ts'
import type { Request, RequestKind } from '../../domain/request.ts'

/**
 * How long will the answer be?
 *
 * Clients say how much they would take, not how much they will get: max_tokens is often unset or ten times too high.
 * What a tenant's answers were like is the better witness, so each (tenant, kind of request, size of max_tokens) has a
 * quantile sketch. The median is what fairness charges at dispatch, the 90th percentile is what KV room is held for,
 * and both are capped by what the plan lets the engine write. A predictor of this kind, charged at dispatch and trued
 * up at settle, is what lets DRR match an oracle in a replica of the VTC experiments (ADR 0003).
 *
 * Fewer than 16 samples there: the tenant's answers of all kinds. Fewer there too: everybody's, at more cautious
 * quantiles (P70, P95), because a stranger has not earned the median. Nothing known at all: a prior that is long.
 *
 * An answer that was cut short by our own cap, a disconnect or a lost replica says only "at least so long". Dropping
 * it would bias the sketch towards short answers exactly when the ladder caps them, so the rest is guessed from those
 * that went on beyond that length (Efron's redistribution to the right): the median of the longer ones.
 *
 * Memory is bounded: the least recently used sketches are forgotten, and nobody can name a sketch but by being served.
 * It does not look at the prompt's content, and it never sees the true length before the end (law L10).
 *
 * Example: max_tokens 4,000, history P50 120 and P90 400 → fairness charges 120, KV holds 400; on a rung that caps
 * answers at 256 → 120 and 256.
 */
export const OUTPUT_LENGTH_DEFAULTS = {
  /** Sketches kept: each is 0.6 kB, so 2.5 MB at most; 4,096 covers a thousand tenants with four habits each. */
  sketchesMax: 4_096,
  /** Samples that one sketch remembers: enough for a steady P90, few enough to follow a tenant who changes habits. */
  memorySamples: 256,
  /** Below this many a sketch is not asked: the P90 of fewer than 16 is little more than their maximum. */
  samplesMin: 16,
  /** What a stranger is thought to write when nothing is known: twice the P50 (129) and P90 (424) of Azure's chats. */
  priorTokens: 256,
  priorTokensHigh: 1_024,
}

export type OutputLengthOptions = typeof OUTPUT_LENGTH_DEFAULTS

/** Longer answers than this count as this long: 256k tokens, beyond every context window in use. */
const OUTPUT_TOKENS_MAX = 2 ** 18 - 1

export interface OutputHabit {
  readonly tenantId: string
  readonly kind: RequestKind
  /** What the client asked for, not what the plan allows: it tells habits apart. */
  readonly outputTokensMax: number | undefined
}

export interface OutputPrediction {
  /** Per choice. */
  readonly tokens: number
  readonly tokensHigh: number
  /** What it is on the average: answers are long-tailed, and above the median lies more than below. */
  readonly tokensMean: number
  readonly source: 'habit' | 'tenant' | 'everybody' | 'prior'
}

/** A sketch with its place: of a tenant's habit, or of all that the tenant does. */
interface KeptSketch extends RecencyItem {
  tenantId: string
  habit: number
  readonly sketch: QuantileSketch
}

/** In the place of a habit: answers of all kinds. */
const ALL_HABITS = -1

export class OutputLengths {
  readonly #options: OutputLengthOptions
  /** By tenant, and there by habit: a tenant has one or two, so a look through them is quicker than a name for each. */
  readonly #byTenant = new Map<string, KeptSketch[]>()
  readonly #recency = new Recency<KeptSketch>()
  readonly #everybody: QuantileSketch

  constructor(options: Partial<OutputLengthOptions> = {}) {
    this.#options = { ...OUTPUT_LENGTH_DEFAULTS, ...options }
    assert(this.#options.sketchesMax >= 2, 'room for one habit and its tenant')
    this.#everybody = this.#makeSketch()
  }

  get sketchCount(): number {
    return this.#recency.size
  }

  predict(habit: OutputHabit, capTokens: number): OutputPrediction {
    const kept = this.#byTenant.get(habit.tenantId)
    const own = kept && keptOf(kept, habitNumber(habit))?.sketch
    if (this.#knows(own)) return quantilesOf(own, { source: 'habit', ratio: 0.5, ratioHigh: 0.9, capTokens })
    const tenant = kept && keptOf(kept, ALL_HABITS)?.sketch
    if (this.#knows(tenant)) return quantilesOf(tenant, { source: 'tenant', ratio: 0.5, ratioHigh: 0.9, capTokens })
    if (this.#knows(this.#everybody)) {
      return quantilesOf(this.#everybody, { source: 'everybody', ratio: 0.7, ratioHigh: 0.95, capTokens })
    }
    return {
      tokens: Math.min(capTokens, this.#options.priorTokens),
      tokensHigh: Math.min(capTokens, this.#options.priorTokensHigh),
      tokensMean: Math.min(capTokens, this.#options.priorTokens),
      source: 'prior',
    }
  }

  /** `isCut`: the answer would have gone on (our cap, a disconnect, a lost replica); it is known only from below. */
  observe(habit: OutputHabit, seen: { readonly tokens: number; readonly isCut: boolean }): void {
    const own = this.#sketchOf(habit.tenantId, habitNumber(habit))
    const tenant = this.#sketchOf(habit.tenantId, ALL_HABITS)
    const tokens = seen.isCut ? guessBeyond(own, seen.tokens, habit.outputTokensMax) : seen.tokens
    own.observe(tokens)
    tenant.observe(tokens)
    this.#everybody.observe(tokens)
  }

  #knows(sketch: QuantileSketch | undefined): sketch is QuantileSketch {
    return sketch !== undefined && sketch.sampleCount >= this.#options.samplesMin
  }

  /** Gets or makes, and notes the use. Where there are too many, the least recently used is emptied and used again. */
  #sketchOf(tenantId: string, habit: number): QuantileSketch {
    const known = keptOf(this.#byTenant.get(tenantId) ?? NONE_KEPT, habit)
    if (known !== undefined) {
      this.#recency.touch(known)
      return known.sketch
    }
    const kept = this.#recency.size >= this.#options.sketchesMax ? this.#takeOldest() : this.#makeKept()
    kept.tenantId = tenantId
    kept.habit = habit
    const ofTenant = this.#byTenant.get(tenantId)
    if (ofTenant === undefined) this.#byTenant.set(tenantId, [kept])
    else ofTenant.push(kept)
    this.#recency.add(kept)
    return kept.sketch
  }

  #takeOldest(): KeptSketch {
    const oldest = this.#recency.takeOldest() as KeptSketch
    const ofTenant = this.#byTenant.get(oldest.tenantId) as KeptSketch[]
    if (ofTenant.length === 1) this.#byTenant.delete(oldest.tenantId)
    else ofTenant.splice(ofTenant.indexOf(oldest), 1)
    oldest.sketch.clear()
    return oldest
  }

  #makeKept(): KeptSketch {
    return { tenantId: '', habit: ALL_HABITS, sketch: this.#makeSketch(), older: undefined, newer: undefined }
  }

  #makeSketch(): QuantileSketch {
    return new QuantileSketch({ valueMax: OUTPUT_TOKENS_MAX, memorySamples: this.#options.memorySamples })
  }
}

export function habitOf(request: Request): OutputHabit {
  return { tenantId: request.tenant.id, kind: request.kind, outputTokensMax: request.outputTokensMax }
}

const NONE_KEPT: readonly KeptSketch[] = []

function keptOf(kept: readonly KeptSketch[], habit: number): KeptSketch | undefined {
  for (const one of kept) if (one.habit === habit) return one
  return undefined
}

const KIND_NUMBERS: Readonly<Record<RequestKind, number>> = {
  chat: 0,
  completion: 1,
  embedding: 2,
  tensors: 3,
  transit: 4,
}

/** Sizes of max_tokens: 0 to 32 bits, or unset. */
const SIZE_UNSET = 33
const SIZES = 34

/** Powers of two: max_tokens 1,000 and 1,024 are one habit, 100 and 4,000 are two. */
function habitNumber({ kind, outputTokensMax }: OutputHabit): number {
  const size = outputTokensMax === undefined ? SIZE_UNSET : 32 - Math.clz32(Math.max(0, outputTokensMax - 1))
  return KIND_NUMBERS[kind] * SIZES + size
}

function quantilesOf(
  sketch: QuantileSketch,
  how: {
    readonly source: OutputPrediction['source']
    readonly ratio: number
    readonly ratioHigh: number
    readonly capTokens: number
  },
): OutputPrediction {
  // At least one token: an answer of none still takes a step.
  const middle = Math.max(1, sketch.quantile(how.ratio) ?? 1)
  const mean = Math.max(1, Math.round(sketch.mean ?? 1))
  const tokensHigh = Math.max(middle, sketch.quantile(how.ratioHigh) ?? 1)
  // Answers that are all alike lie in one bucket of the sketch, and its middle may be a sixteenth off; their mean is not.
  const tokens = middle === tokensHigh && Math.abs(mean - middle) * 8 <= middle ? mean : middle
  return {
    tokens: Math.min(how.capTokens, tokens),
    tokensHigh: Math.min(how.capTokens, Math.max(tokens, tokensHigh)),
    tokensMean: Math.min(how.capTokens, mean),
    source: how.source,
  }
}

function guessBeyond(sketch: QuantileSketch, tokens: number, outputTokensMax: number | undefined): number {
  // Nobody went on further: say half as long again, so that a cap which cuts everybody still lets the guess grow.
  const guess = sketch.quantileAbove(tokens, 0.5) ?? tokens + (tokens >> 1)
  return Math.min(guess, outputTokensMax ?? OUTPUT_TOKENS_MAX)
}
