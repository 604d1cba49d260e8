/**
 * Names for the blocks of a prompt, by which an engine finds blocks that it has computed. A full block is named by its
 * tokens and by the name of the block before it.
 *
 * Two 32-bit chains make a 52-bit name: with forty thousand blocks, a single chain would confuse two blocks now and
 * then.
 */
export class BlockNames {
  readonly #blockTokens: number
  readonly #names: number[] = []
  #high = 0x811c9dc5
  #low = 0x9e3779b1
  /** Tokens of the block that is not full. */
  #open = 0

  constructor(blockTokens: number) {
    this.#blockTokens = blockTokens
  }

  add(tokens: readonly number[]): void {
    for (let i = 0; i < tokens.length; i++) {
      const token = tokens[i] as number
      this.#high = Math.imul(this.#high ^ token, 0x01000193) ^ (this.#high >>> 15)
      this.#low = Math.imul(this.#low ^ token, 0x85ebca6b) ^ (this.#low >>> 13)
      if (++this.#open < this.#blockTokens) continue
      this.#open = 0
      this.#names.push((this.#high >>> 0) * 2 ** 20 + (this.#low >>> 12))
    }
  }

  /** The names if these tokens followed; the blocks are unchanged. */
  with(tokens: readonly number[]): readonly number[] {
    const longer = new BlockNames(this.#blockTokens)
    longer.#high = this.#high
    longer.#low = this.#low
    longer.#open = this.#open
    longer.add(tokens)
    return [...this.#names, ...longer.#names]
  }
}
