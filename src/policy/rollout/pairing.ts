/**
 * Which attempt of the stable release is this attempt of the canary compared with?
 *
 * One of its own kind: the same tenant, about the same prompt length. Inside such a stratum, if the releases are alike,
 * it is a coin's toss which of two attempts was slower, whatever the tenants are like and however unequal they are;
 * comparing averages over everybody would mistake a change of the mixture for a change of the release.
 *
 * Each attempt is used once. Canary attempts take turns: one is compared with the last stable attempt before it, the
 * next with the first one after it, so that a load that rises or falls steadily favours neither.
 *
 * Bounded: `strataMax` strata, the longest unused forgotten first; in each a few attempts that wait for a partner.
 */
export interface PairingOptions {
  readonly strataMax: number
  /** Attempts of each side that wait in a stratum: fresh partners are the best. */
  readonly waitingMax: number
}

export const PAIRING_DEFAULTS: PairingOptions = { strataMax: 2_048, waitingMax: 8 }

interface Stratum<T> {
  readonly stable: T[]
  readonly canary: T[]
  looksBack: boolean
}

export class Pairing<T> {
  readonly #options: PairingOptions
  readonly #strata = new Map<string, Stratum<T>>()
  readonly #onPair: (canary: T, stable: T) => void

  constructor(onPair: (canary: T, stable: T) => void, options: PairingOptions = PAIRING_DEFAULTS) {
    this.#onPair = onPair
    this.#options = options
  }

  get strataCount(): number {
    return this.#strata.size
  }

  addStable(name: string, fact: T): void {
    const stratum = this.#stratumOf(name)
    const canary = stratum.canary.shift()
    if (canary === undefined) keep(stratum.stable, fact, this.#options.waitingMax)
    else this.#onPair(canary, fact)
  }

  addCanary(name: string, fact: T): void {
    const stratum = this.#stratumOf(name)
    stratum.looksBack = !stratum.looksBack
    const isFull = stratum.canary.length >= this.#options.waitingMax
    const stable = stratum.looksBack || isFull ? stratum.stable.pop() : undefined
    if (stable === undefined) keep(stratum.canary, fact, this.#options.waitingMax)
    else this.#onPair(fact, stable)
  }

  #stratumOf(name: string): Stratum<T> {
    let stratum = this.#strata.get(name)
    if (stratum === undefined) {
      stratum = { stable: [], canary: [], looksBack: false }
      if (this.#strata.size >= this.#options.strataMax) this.#strata.delete(this.#strata.keys().next().value as string)
    } else this.#strata.delete(name)
    // Put back last: a map keeps the order of insertion, so the first is the longest unused.
    this.#strata.set(name, stratum)
    return stratum
  }
}

function keep<T>(list: T[], fact: T, countMax: number): void {
  list.push(fact)
  if (list.length > countMax) list.shift()
}
