import { assert } from '../base/assert.ts'
import type { DecodeSet } from './decode-set.ts'
import type { Sequence } from './sequence.ts'
import { SequenceList } from './sequence-list.ts'
import { SlotHeap } from './slot-heap.ts'

/**
 * Decoding without speculation: every member gains exactly one token a step.
 *
 * So nothing has to be counted per sequence. One turn counter ticks for all; a member remembers at which turn it
 * joined and with how many tokens, and everything else follows:
 *
 *     known tokens   = known at joining + (turn − turn of joining)
 *     done           when turn = turn of joining + tokens still to make     → a heap by that turn
 *     longest        has the greatest (known at joining − turn of joining)  → a heap by that, it never changes
 *     needs a block  when known tokens = 1 (mod block size), that is at one turn in every `blockTokens`, always the
 *                    same → members are counted by that phase, and the demand of a step is one look-up
 *
 * A step of 256 sequences costs what a step of one does, and a stretch of steps costs what one step does.
 */
export class SteadyDecodes implements DecodeSet {
  readonly #blockTokens: number
  readonly #unitBlocks: number
  readonly #list = new SequenceList()
  #turn = 0
  #isStepping = false
  #contextSum = 0
  #everyStepCount = 0

  readonly #slots: Array<Sequence | undefined>
  readonly #spareSlots: number[] = []
  /** Known tokens at joining less turn of joining. */
  readonly #offsets: Float64Array
  readonly #byDoneTurn: SlotHeap
  readonly #byContext: SlotHeap
  /** Members that need a block at turns of each phase. */
  readonly #phaseCounts: Int32Array

  constructor(options: { sequencesMax: number; blockTokens: number; unitBlocks: number }) {
    this.#blockTokens = options.blockTokens
    this.#unitBlocks = options.unitBlocks
    this.#slots = Array.from({ length: options.sequencesMax }, () => undefined)
    for (let slot = options.sequencesMax - 1; slot >= 0; slot--) this.#spareSlots.push(slot)
    this.#offsets = new Float64Array(options.sequencesMax)
    this.#byDoneTurn = new SlotHeap(options.sequencesMax)
    this.#byContext = new SlotHeap(options.sequencesMax)
    this.#phaseCounts = new Int32Array(options.blockTokens)
  }

  get count(): number {
    return this.#list.count
  }

  get stepTokens(): number {
    return this.#list.count
  }

  get contextSum(): number {
    return this.#contextSum
  }

  get contextMax(): number {
    return this.#list.count === 0 ? 0 : this.#turn - this.#byContext.minKey
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
    const slot = this.#spareSlots.pop()
    assert(slot !== undefined, 'no more sequences decode than the limit allows')
    const known = sequence.knownTokens
    const offset = known - this.#turn
    sequence.place = 'decoding'
    sequence.slot = slot
    this.#slots[slot] = sequence
    this.#offsets[slot] = offset
    this.#list.pushInOrder(sequence)
    this.#byDoneTurn.add(slot, this.#turn + sequence.outputTokens - sequence.generatedTokens)
    this.#byContext.add(slot, -offset)
    this.#phaseCounts[this.#phaseOf(offset)]!++
    this.#contextSum += known
    if (sequence.isReportedEveryStep) this.#everyStepCount++
  }

  leave(sequence: Sequence): void {
    const slot = sequence.slot
    const offset = this.#offsets[slot] as number
    const known = offset + this.#turn
    sequence.ownBlocks = this.blocksOf(sequence) - sequence.units.length * this.#unitBlocks
    sequence.generatedTokens = known - sequence.promptTokens
    sequence.computedTokens = known - 1
    sequence.slot = -1
    this.#slots[slot] = undefined
    this.#spareSlots.push(slot)
    this.#list.remove(sequence)
    this.#byDoneTurn.remove(slot)
    this.#byContext.remove(slot)
    this.#phaseCounts[this.#phaseOf(offset)]!--
    this.#contextSum -= known
    if (sequence.isReportedEveryStep) this.#everyStepCount--
  }

  blocksForSteps(steps: number): number {
    const from = this.#turn + (this.#isStepping ? 1 : 0)
    const rounds = Math.floor(steps / this.#blockTokens)
    let blocks = rounds * this.#list.count
    for (let turn = from + rounds * this.#blockTokens; turn < from + steps; turn++) {
      blocks += this.#phaseCounts[turn % this.#blockTokens] as number
    }
    return blocks
  }

  leapSteps(blocksFree: number, stepsMax: number): number {
    if (this.#everyStepCount > 0) return 1
    const steps = Math.min(stepsMax, this.#byDoneTurn.minKey - this.#turn)
    if (this.blocksForSteps(steps - 1) <= blocksFree) return steps
    // Whole rounds first, then turn by turn: a round over all phases gives every member one block.
    let further = Math.floor(blocksFree / this.#list.count) * this.#blockTokens
    while (this.blocksForSteps(further + 1) <= blocksFree) further++
    return Math.min(steps, 1 + further)
  }

  beginStep(): void {
    this.#isStepping = true
  }

  finishSteps(steps: number, isStepLeft: boolean, done: Sequence[]): number {
    const tokens = steps * this.#list.count
    this.#turn += steps
    this.#contextSum += tokens
    this.#isStepping = isStepLeft
    const from = done.length
    while (this.#byDoneTurn.minKey <= this.#turn) {
      const sequence = this.#slots[this.#byDoneTurn.min] as Sequence
      this.leave(sequence)
      done.push(sequence)
    }
    if (done.length - from > 1) done.sort((a, b) => a.ordinal - b.ordinal)
    return tokens
  }

  generatedBy(sequence: Sequence): number {
    return (this.#offsets[sequence.slot] as number) + this.#turn - sequence.promptTokens
  }

  /** All known tokens but the newest are computed; a step that runs is computing that one too. */
  blocksOf(sequence: Sequence): number {
    const known = (this.#offsets[sequence.slot] as number) + this.#turn
    return Math.ceil((known - 1 + (this.#isStepping ? 1 : 0)) / this.#blockTokens)
  }

  members(): Iterable<Sequence> {
    return this.#list
  }

  /** The turns, modulo the block size, at which a member's newest token starts a block. */
  #phaseOf(offset: number): number {
    const phase = (1 - offset) % this.#blockTokens
    return phase < 0 ? phase + this.#blockTokens : phase
  }
}
