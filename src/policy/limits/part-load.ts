import type { Ledger, Load } from './ledger.ts'

/**
 * How loaded does a replica look to a limit, when this gateway may use only a part of it?
 *
 * A limit knows whole replicas. Several gateways share one by parts of its slots: 16 of 64 slots are a quarter. What this
 * gateway holds is held against the limit as if every gateway did the same on its own part: divided by the part. Where the
 * limit is linear in the load, as the mean time of a step is, every gateway within its part means all together within the
 * limit, without anybody knowing the others' load of this instant. Strangers' load is everybody's and is not divided.
 *
 * Example: 64 slots, 16 of them ours, and 12 turns of ours in flight: the limit sees 48 sequences.
 */
export class PartLoad implements Load {
  readonly #ledger: Ledger
  /** 0 … 1; a part of 0 fits nothing, and nobody asks. */
  part = 1

  constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  get sequences(): number {
    return Math.floor(this.#ledger.held / this.part) + this.#ledger.strangerSequences
  }

  get kvTokens(): number {
    return this.#ledger.heldKvTokens / this.part + this.#ledger.strangerKvTokens
  }

  get contextTokens(): number {
    return this.#ledger.heldContextTokens / this.part + this.#ledger.strangerKvTokens
  }

  get prefillMilliPerToken(): number {
    return this.#ledger.heldPrefillMilli / this.part
  }

  get prefillTokens(): number {
    return this.#ledger.heldPrefillTokens / this.part
  }

  get readTokens(): number {
    return this.#ledger.readTokens
  }

  get engineUs(): number {
    return this.#ledger.engineUs
  }
}

/** Everything in flight, as last told; but of the prompts that are unread only ours, because others' are read by now. */
export class TotalLoad implements Load {
  readonly #room: { readonly ledger: Ledger }

  /** The room's ledger is another one when another pool joins its engine. */
  constructor(room: { readonly ledger: Ledger }) {
    this.#room = room
  }

  get sequences(): number {
    return this.#room.ledger.sequences
  }

  get kvTokens(): number {
    return this.#room.ledger.kvTokens
  }

  get contextTokens(): number {
    return this.#room.ledger.contextTokens
  }

  get prefillMilliPerToken(): number {
    return this.#room.ledger.prefillMilliPerToken
  }

  get prefillTokens(): number {
    return this.#room.ledger.heldPrefillTokens
  }

  get readTokens(): number {
    return this.#room.ledger.readTokens
  }

  get engineUs(): number {
    return this.#room.ledger.engineUs
  }
}
