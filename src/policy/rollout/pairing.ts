/**
 * Which attempt of the stable release is this attempt of the canary compared with?
 *
 * One of its own kind: the same tenant, about the same prompt length (the *stratum*). Inside a stratum, if the releases
 * are alike, it is a coin's toss which of two attempts was slower, whatever the tenants are like and however unequal
 * they are; comparing averages over everybody would mistake a change of the mixture for a change of the release.
 *
 * Each attempt is used once. Canary attempts take turns: one is compared with the last stable attempt before it, the
 * next with the first one after it, so that a load that rises or falls steadily favours neither.
 *
 * Among the partners that a stratum has, one of the same *load class* is preferred where classes are told. A canary
 * attempt that finds none among the stable attempts that wait, or among the next `waitingMax` that come, takes the
 * nearest in time of any class: what an unlike pair may say is the judge's business, but no attempt is thrown away for
 * want of a like one. The choice looks at tenant, size, class and order, all fixed before the outcome was known, so it
 * favours neither release.
 *
 * Bounded: `strataMax` strata, the longest unused forgotten first; in each, `waitingMax` attempts of either side.
 *
 * Example: stable attempts of the classes 5, 5, 3 wait. A canary attempt of class 5 that looks back takes the second; one
 * of class 1 takes the last, of class 3, and the pair is unlike.
 */
export interface PairingOptions {
  readonly strataMax: number
  /** Attempts of each side that wait in a stratum: fresh partners are the best. */
  readonly waitingMax: number
}

export const PAIRING_DEFAULTS: PairingOptions = { strataMax: 2_048, waitingMax: 8 }

interface Waiting<T> {
  readonly fact: T
  readonly loadClass: number
}

interface WaitingCanary<T> extends Waiting<T> {
  /** Stable attempts of another class that came while it waited. */
  passedCount: number
}

interface Stratum<T> {
  readonly stable: Waiting<T>[]
  readonly canary: WaitingCanary<T>[]
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

  addStable(name: string, fact: T, loadClass = 0): void {
    const stratum = this.#stratumOf(name)
    const { canary, stable } = stratum
    const like = canary.findIndex((waiting) => waiting.loadClass === loadClass)
    const chosen = like >= 0 ? like : this.#leastPatient(canary)
    const [partner] = chosen >= 0 ? canary.splice(chosen, 1) : []
    if (partner === undefined) keep(stable, { fact, loadClass }, this.#options.waitingMax)
    else this.#onPair(partner.fact, fact)
  }

  addCanary(name: string, fact: T, loadClass = 0): void {
    const stratum = this.#stratumOf(name)
    const { canary, stable } = stratum
    stratum.looksBack = !stratum.looksBack
    const isFull = canary.length >= this.#options.waitingMax
    const like = stratum.looksBack || isFull ? stable.findLastIndex((waiting) => waiting.loadClass === loadClass) : -1
    const chosen = like >= 0 || !(stratum.looksBack || isFull) ? like : stable.length - 1
    const [partner] = chosen >= 0 ? stable.splice(chosen, 1) : []
    if (partner === undefined) keep(canary, { fact, loadClass, passedCount: 0 }, this.#options.waitingMax)
    else this.#onPair(fact, partner.fact)
  }

  /** The canary attempt that has waited for a like partner for long enough, the oldest first; −1 when none has. */
  #leastPatient(canary: WaitingCanary<T>[]): number {
    for (const waiting of canary) waiting.passedCount++
    return canary.findIndex(({ passedCount }) => passedCount >= this.#options.waitingMax)
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
