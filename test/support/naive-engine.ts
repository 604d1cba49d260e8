import type { EngineEvent } from '../../src/engine/engine-event.ts'
import type { EngineLimits } from '../../src/engine/engine-state.ts'
import type { StepCoefficients } from '../../src/engine/gpu-profile.ts'
import type { SequenceSpec } from '../../src/engine/sequence.ts'
import { acceptedTokens, draftUs, type Speculation } from '../../src/engine/speculation.ts'
import { type StepPace, StepTime, TICKS_PER_US } from '../../src/engine/step-time.ts'
import { naiveBatch, naiveBatchDueAt, naiveLoad } from './naive-batches.ts'
import { naiveShares } from './naive-shares.ts'

/**
 * The engine's twin: the same rules, written so that they can be read off, with no thought for speed. Every block has a
 * number and a place, every step is taken one by one and looks at every sequence, time is one big integer of ticks.
 * Shared with the engine: the duration of a single step, and the draws of speculation.
 */
interface Twin {
  readonly spec: SequenceSpec
  readonly ordinal: number
  readonly arrivedAt: number
  /** Blocks in token order. */
  blocks: number[]
  computed: number
  /** All it knew was computed once, and it has not been preempted since. */
  isDecoding: boolean
  generated: number
  reported: number
  cached: number | undefined
  firstTokenAt: number | undefined
  preemptions: number
  isInBatch: boolean
}

interface NamedUnit {
  readonly key: string
  readonly blocks: number[]
  holders: Set<Twin>
}

interface Chunk {
  readonly twin: Twin
  readonly tokens: number
  readonly context: number
}

interface RunningStep {
  readonly endTicks: bigint
  readonly decoding: Twin[]
  readonly chunks: Chunk[]
}

export interface NaiveOptions {
  readonly coefficients: StepCoefficients
  readonly limits: EngineLimits
  readonly speculation?: Speculation
  readonly seed?: number
}

const TICKS = BigInt(TICKS_PER_US)

export class NaiveEngine {
  readonly events: EngineEvent[] = []
  /** Each sequence's share of the engine's time, and what it held in KV memory, step by step. */
  readonly spentUs = new Map<string, number>()
  readonly kvTokenUs = new Map<string, number>()
  readonly #options: NaiveOptions
  readonly #stepTime: StepTime
  #waiting: Twin[] = []
  #running: Twin[] = []
  #blank: number[]
  /** All named units, by salt and name; idle ones are those without holders, oldest first in `#idle`. */
  readonly #units = new Map<string, NamedUnit>()
  #idle: NamedUnit[] = []
  #step: RunningStep | undefined
  #boundary = 0n
  #ordinal = 0
  stepCount = 0
  preemptionCount = 0

  constructor(options: NaiveOptions) {
    this.#options = options
    this.#stepTime = new StepTime(options.coefficients, options.limits.tokenBudget)
    this.#blank = Array.from({ length: options.limits.blockCount }, (_, block) => block)
  }

  get running(): number {
    return this.#running.length
  }

  get waiting(): number {
    return this.#waiting.length
  }

  get blocksFree(): number {
    return this.#blank.length + this.#idle.reduce((sum, unit) => sum + unit.blocks.length, 0)
  }

  get nextStepEndAt(): number | undefined {
    return this.#step === undefined ? undefined : ceilUs(this.#step.endTicks)
  }

  submit(now: number, spec: SequenceSpec): void {
    this.runTo(now)
    if (this.#step === undefined && this.#running.length === 0 && this.#waiting.length === 0) {
      this.#boundary = BigInt(now) * TICKS
    }
    this.#waiting.push({
      spec,
      ordinal: this.#ordinal++,
      arrivedAt: now,
      blocks: [],
      computed: 0,
      isDecoding: false,
      generated: 0,
      reported: 0,
      cached: undefined,
      firstTokenAt: undefined,
      preemptions: 0,
      isInBatch: false,
    })
  }

  abort(now: number, id: string): number | undefined {
    this.runTo(now)
    const twin = [...this.#waiting, ...this.#running].find((other) => other.spec.id === id)
    if (twin === undefined) return undefined
    this.#remove(twin)
    return twin.generated
  }

  /** Everything that ends at or before `now`, and every step that begins before it. */
  runTo(now: number): void {
    for (;;) {
      if (this.#step === undefined) {
        if (this.#running.length === 0 && this.#waiting.length === 0) return
        const startAt = BigInt(this.#batchDueAt() ?? 0)
        if (startAt > this.#boundary / TICKS) {
          if (startAt >= BigInt(now)) return
          this.#boundary = startAt * TICKS
        } else if (this.#boundary / TICKS >= BigInt(now)) return
        this.#begin()
      }
      if (this.#step === undefined || this.#step.endTicks > BigInt(now) * TICKS) return
      this.#end(this.#step)
    }
  }

  /** Static batches: when the next may begin; undefined when one runs, or in continuous batching. */
  #batchDueAt(): number | undefined {
    const isBetween = this.#running.length === 0 && this.#waiting[0]?.isInBatch === false
    return isBetween ? naiveBatchDueAt(this.#waiting, this.#options) : undefined
  }

  #begin(): void {
    const { limits, speculation } = this.#options
    if (this.#batchDueAt() !== undefined)
      for (const twin of naiveBatch(this.#waiting, this.#options)) twin.isInBatch = true
    const tokensEach = 1 + (speculation?.draftTokens ?? 0)
    const preemptionsBefore = this.preemptionCount
    const chunks: Chunk[] = []

    while (this.#lackingInAll(tokensEach) > this.blocksFree) this.#preemptLast()
    const decoding = this.#running.filter((twin) => twin.isDecoding)
    for (const twin of decoding) this.#allocate(twin, twin.computed + tokensEach)
    let budget = limits.tokenBudget - decoding.length * tokensEach
    for (const twin of this.#running.filter((other) => !other.isDecoding)) {
      const tokens = this.#chunk(twin, budget)
      budget -= tokens
      this.#allocate(twin, twin.computed + tokens)
      if (tokens > 0) this.#compute(twin, tokens, chunks)
    }
    if (this.preemptionCount === preemptionsBefore) this.#admit(budget, chunks)
    this.#time(decoding, chunks)
  }

  /** What a prompt gets of a step in which this much of the budget is left. */
  #chunk(twin: Twin, budget: number): number {
    return Math.min(known(twin) - twin.computed, this.#longTokens, budget)
  }

  get #longTokens(): number {
    return this.#options.limits.longPrefillTokens ?? Number.POSITIVE_INFINITY
  }

  /** Blocks that the step needs for everyone that runs. */
  #lackingInAll(tokensEach: number): number {
    const decoding = this.#running.filter((twin) => twin.isDecoding)
    let blocks = decoding.reduce((sum, twin) => sum + this.#lacking(twin, twin.computed + tokensEach), 0)
    let budget = this.#options.limits.tokenBudget - decoding.length * tokensEach
    for (const twin of this.#running.filter((other) => !other.isDecoding)) {
      const tokens = this.#chunk(twin, budget)
      blocks += this.#lacking(twin, twin.computed + tokens)
      budget -= tokens
    }
    return blocks
  }

  #compute(twin: Twin, tokens: number, chunks: Chunk[]): void {
    chunks.push({ twin, tokens, context: twin.computed })
    twin.computed += tokens
    this.#nameUnits(twin)
  }

  #lacking(twin: Twin, tokens: number): number {
    return Math.max(0, Math.ceil(tokens / this.#options.limits.blockTokens) - twin.blocks.length)
  }

  #allocate(twin: Twin, tokens: number): void {
    for (let lacking = this.#lacking(twin, tokens); lacking > 0; lacking--) twin.blocks.push(this.#takeBlock())
  }

  #preemptLast(): void {
    const victim = this.#running.at(-1) as Twin
    this.#remove(victim)
    victim.computed = 0
    victim.isDecoding = false
    victim.preemptions++
    this.preemptionCount++
    this.#waiting.unshift(victim)
  }

  #admit(budgetAtStart: number, chunks: Chunk[]): void {
    const { limits } = this.#options
    let budget = budgetAtStart
    for (;;) {
      const twin = this.#waiting[0]
      if (twin === undefined || budget === 0 || this.#running.length >= limits.sequencesMax) return
      if (limits.staticBatching !== undefined && !twin.isInBatch) return
      const isLong = (other: Twin): boolean => known(other) > this.#longTokens
      if (isLong(twin) && this.#running.some((o) => isLong(o) && !o.isDecoding && o.computed < known(o))) return
      const units = this.#cachedUnits(twin)
      const idleBlocks = units.filter((unit) => unit.holders.size === 0).reduce((sum, u) => sum + u.blocks.length, 0)
      const cachedBlocks = units.reduce((sum, unit) => sum + unit.blocks.length, 0)
      const lacking = Math.ceil(known(twin) / limits.blockTokens) - cachedBlocks
      if (lacking > this.blocksFree - idleBlocks) return
      this.#waiting.shift()
      this.#running.push(twin)
      for (const unit of units) {
        unit.holders.add(twin)
        twin.blocks.push(...unit.blocks)
      }
      this.#idle = this.#idle.filter((unit) => unit.holders.size === 0)
      twin.computed = cachedBlocks * limits.blockTokens
      twin.cached ??= twin.computed
      const tokens = this.#chunk(twin, budget)
      this.#allocate(twin, twin.computed + tokens)
      this.#compute(twin, tokens, chunks)
      budget -= tokens
    }
  }

  #time(decoding: readonly Twin[], chunks: readonly Chunk[]): void {
    const { speculation } = this.#options
    const pace: StepPace = { ticks: 0, ticksGrowth: 0, stepsMax: 0 }
    const contexts = decoding.map(known)
    this.#stepTime.paceOf(naiveLoad(contexts, chunks, 1 + (speculation?.draftTokens ?? 0)), pace)
    let ticks = pace.ticks
    if (speculation !== undefined && decoding.length > 0) {
      ticks += Math.round(draftUs(speculation, decoding.length) * TICKS_PER_US)
    }
    this.#share(decoding, chunks, ticks / TICKS_PER_US)
    this.#step = { endTicks: this.#boundary + BigInt(ticks), decoding: [...decoding], chunks: [...chunks] }
  }

  #share(decoding: readonly Twin[], chunks: readonly Chunk[], us: number): void {
    const tokensEach = 1 + (this.#options.speculation?.draftTokens ?? 0)
    const member = (twin: Twin, tokens: number, contextTokens: number, isDecoding: boolean) => {
      return { id: twin.spec.id, tokens, contextTokens, isDecoding }
    }
    const members = [
      ...decoding.map((twin) => member(twin, tokensEach, known(twin), true)),
      ...chunks.map(({ twin, tokens, context }) => member(twin, tokens, context, false)),
    ]
    const shares = naiveShares(this.#options.coefficients, members, us)
    for (const [i, { id, tokens, contextTokens, isDecoding }] of members.entries()) {
      const heldTokens = isDecoding ? contextTokens : contextTokens + tokens
      this.spentUs.set(id, (this.spentUs.get(id) ?? 0) + (shares[i] as number))
      this.kvTokenUs.set(id, (this.kvTokenUs.get(id) ?? 0) + us * heldTokens)
    }
  }

  #end(step: RunningStep): void {
    this.#step = undefined
    this.#boundary = step.endTicks
    this.stepCount++
    const at = ceilUs(step.endTicks)
    const decoding = step.decoding.filter((twin) => this.#running.includes(twin))
    for (const twin of decoding) {
      const burst = this.#burst(twin)
      twin.generated += burst
      twin.computed += burst
      if (twin.generated === twin.spec.outputTokens) this.#finish(twin, at)
    }
    for (const twin of decoding) if (twin.generated < twin.spec.outputTokens) this.#report(twin, at)
    for (const { twin } of step.chunks) {
      if (!this.#running.includes(twin) || twin.computed < known(twin)) continue
      twin.generated++
      twin.isDecoding = true
      if (twin.firstTokenAt === undefined) {
        twin.firstTokenAt = at
        twin.reported = 1
        this.events.push({ kind: 'first-token', at, id: twin.spec.id, cachedTokens: twin.cached as number })
      } else if (twin.generated < twin.spec.outputTokens) this.#report(twin, at)
      if (twin.generated === twin.spec.outputTokens) this.#finish(twin, at)
    }
  }

  #burst(twin: Twin): number {
    const { speculation, seed = 0 } = this.#options
    if (speculation === undefined) return 1
    const at = { ordinal: twin.ordinal, generatedTokens: twin.generated }
    return Math.min(1 + acceptedTokens(speculation, seed, at), twin.spec.outputTokens - twin.generated)
  }

  #report(twin: Twin, at: number): void {
    if (twin.spec.reports !== 'every-step') return
    this.events.push({ kind: 'tokens', at, id: twin.spec.id, tokens: twin.generated - twin.reported })
    twin.reported = twin.generated
  }

  #finish(twin: Twin, at: number): void {
    this.#remove(twin)
    this.events.push({
      kind: 'finished',
      at,
      id: twin.spec.id,
      tokens: twin.generated - twin.reported,
      arrivedAt: twin.arrivedAt,
      firstTokenAt: twin.firstTokenAt as number,
      usage: {
        promptTokens: twin.spec.promptTokens,
        cachedTokens: twin.cached as number,
        outputTokens: twin.generated,
      },
      preemptions: twin.preemptions,
    })
  }

  /** Out of every list; its named units go back deepest first, the other blocks become blank. */
  #remove(twin: Twin): void {
    this.#waiting = this.#waiting.filter((other) => other !== twin)
    this.#running = this.#running.filter((other) => other !== twin)
    this.#nameUnits(twin)
    const held = [...this.#units.values()].filter((unit) => unit.holders.has(twin))
    held.sort((a, b) => twin.blocks.indexOf(b.blocks[0] as number) - twin.blocks.indexOf(a.blocks[0] as number))
    for (const unit of held) {
      unit.holders.delete(twin)
      if (unit.holders.size === 0) this.#idle.push(unit)
    }
    const named = new Set(held.flatMap((unit) => unit.blocks))
    this.#blank.push(...twin.blocks.filter((block) => !named.has(block)))
    twin.blocks = []
  }

  #unitKey(twin: Twin, index: number): string | undefined {
    const hash = twin.spec.prefixHashes?.[index]
    return hash === undefined ? undefined : `${twin.spec.salt ?? ''}/${hash}`
  }

  #unitTokens(): number {
    return this.#options.limits.prefixUnitTokens ?? this.#options.limits.blockTokens
  }

  #cachedUnits(twin: Twin): NamedUnit[] {
    const units: NamedUnit[] = []
    for (let i = 0; (i + 1) * this.#unitTokens() <= known(twin) - 1; i++) {
      const unit = this.#units.get(this.#unitKey(twin, i) ?? '')
      if (unit === undefined) break
      units.push(unit)
    }
    return units
  }

  #nameUnits(twin: Twin): void {
    const unitBlocks = this.#unitTokens() / this.#options.limits.blockTokens
    for (let i = 0; (i + 1) * this.#unitTokens() <= twin.computed; i++) {
      const key = this.#unitKey(twin, i)
      if (key === undefined) return
      const named = this.#units.get(key)
      if (named?.holders.has(twin)) continue
      if (named !== undefined) return
      const blocks = twin.blocks.slice(i * unitBlocks, (i + 1) * unitBlocks)
      this.#units.set(key, { key, blocks, holders: new Set([twin]) })
    }
  }

  #takeBlock(): number {
    if (this.#blank.length === 0) {
      const oldest = this.#idle.shift() as NamedUnit
      this.#units.delete(oldest.key)
      this.#blank.push(...oldest.blocks)
    }
    return this.#blank.shift() as number
  }
}

const known = (twin: Twin): number => twin.spec.promptTokens + twin.generated

const ceilUs = (ticks: bigint): number => Number((ticks + TICKS - 1n) / TICKS)
