import type { DecodeSet } from './decode-set.ts'
import type { Sequence } from './sequence.ts'
import { SequenceList } from './sequence-list.ts'
import { acceptedTokens, type Speculation, type SpeculationCounters } from './speculation.ts'

/**
 * Decoding with speculation: each member gains a burst of its own, so nothing can be leapt over and every step looks at
 * every member. The state lives in the sequences themselves; a step allocates nothing.
 *
 * As in vLLM a step reserves slots for the whole draft, and blocks reserved for rejected tokens stay with the sequence,
 * which will need them soon.
 */
export class BurstDecodes implements DecodeSet {
  readonly #blockTokens: number
  readonly #unitBlocks: number
  readonly #speculation: Speculation
  readonly #seed: number
  readonly #list = new SequenceList()
  readonly counters: SpeculationCounters
  #contextSum = 0
  #everyStepCount = 0

  constructor(options: { blockTokens: number; unitBlocks: number; speculation: Speculation; seed: number }) {
    this.#blockTokens = options.blockTokens
    this.#unitBlocks = options.unitBlocks
    this.#speculation = options.speculation
    this.#seed = options.seed
    this.counters = {
      drafts: 0,
      draftTokens: 0,
      acceptedTokens: 0,
      acceptedByPosition: options.speculation.acceptance.map(() => 0),
    }
  }

  get count(): number {
    return this.#list.count
  }

  get stepTokens(): number {
    return this.#list.count * (1 + this.#speculation.draftTokens)
  }

  get contextSum(): number {
    return this.#contextSum
  }

  get contextMax(): number {
    let max = 0
    for (let member = this.#list.first; member !== undefined; member = member.next) {
      if (member.knownTokens > max) max = member.knownTokens
    }
    return max
  }

  get first(): Sequence | undefined {
    return this.#list.first
  }

  get last(): Sequence | undefined {
    return this.#list.last
  }

  get everyStepCount(): number {
    return this.#everyStepCount
  }

  join(sequence: Sequence): void {
    sequence.place = 'decoding'
    this.#list.pushInOrder(sequence)
    this.#contextSum += sequence.knownTokens
    if (sequence.isReportedEveryStep) this.#everyStepCount++
  }

  leave(sequence: Sequence): void {
    sequence.computedTokens = sequence.knownTokens - 1
    this.#list.remove(sequence)
    this.#contextSum -= sequence.knownTokens
    if (sequence.isReportedEveryStep) this.#everyStepCount--
  }

  blocksForSteps(steps: number): number {
    if (steps === 0) return 0
    let blocks = 0
    for (let member = this.#list.first; member !== undefined; member = member.next)
      blocks += this.#blocksLacking(member)
    return blocks
  }

  beginStep(): void {
    for (let member = this.#list.first; member !== undefined; member = member.next) {
      member.ownBlocks += this.#blocksLacking(member)
    }
  }

  leapSteps(): number {
    return 1
  }

  finishSteps(_steps: number, _isStepLeft: boolean, done: Sequence[]): number {
    let tokens = 0
    for (let member = this.#list.first; member !== undefined; ) {
      const next = member.next
      const burst = Math.min(1 + this.#draft(member), member.outputTokens - member.generatedTokens)
      member.generatedTokens += burst
      this.#contextSum += burst
      tokens += burst
      if (member.generatedTokens === member.outputTokens) {
        this.leave(member)
        done.push(member)
      }
      member = next
    }
    return tokens
  }

  generatedBy(sequence: Sequence): number {
    return sequence.generatedTokens
  }

  blocksOf(sequence: Sequence): number {
    return sequence.ownBlocks + sequence.units.length * this.#unitBlocks
  }

  members(): Iterable<Sequence> {
    return this.#list
  }

  #blocksLacking(member: Sequence): number {
    const blocks = Math.ceil((member.knownTokens + this.#speculation.draftTokens) / this.#blockTokens)
    return Math.max(0, blocks - this.blocksOf(member))
  }

  #draft(member: Sequence): number {
    const accepted = acceptedTokens(this.#speculation, this.#seed, member)
    const { counters } = this
    counters.drafts++
    counters.draftTokens += this.#speculation.draftTokens
    counters.acceptedTokens += accepted
    for (let i = 0; i < accepted; i++) counters.acceptedByPosition[i]!++
    return accepted
  }
}
