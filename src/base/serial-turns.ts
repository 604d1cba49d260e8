/**
 * Turns of the event loop for heavy work, one piece of work in each. Work that waits for its turn is resumed in the order
 * in which it asked, so that many pieces at once do not stop everything else: they share the loop, and add up in no turn.
 */
export class SerialTurns {
  readonly #breathe: () => Promise<void>
  readonly #breathsPerTurn: number
  #last: Promise<void> = Promise.resolve()

  /** `breathe` lets everything run that waits for the event loop. */
  constructor(breathe: () => Promise<void>, breathsPerTurn: number) {
    this.#breathe = breathe
    this.#breathsPerTurn = breathsPerTurn
  }

  /** Resolves in a later round of the event loop, after the turns of those that asked before. */
  next(): Promise<void> {
    this.#last = this.#last.then(() => this.#rest())
    return this.#last
  }

  async #rest(): Promise<void> {
    for (let i = 0; i < this.#breathsPerTurn; i++) await this.#breathe()
  }
}

/**
 * Rounds of the event loop between two turns. A new connection needs one round to be accepted and one to be read, so a
 * health check waits for one heavy piece of work and not for three.
 */
export const BREATHS_PER_TURN = 3
