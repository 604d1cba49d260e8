/**
 * Which of many words occur in a text? (Aho and Corasick, 1975.) One step per character, however many words there are.
 * Case is ignored. Characters that no word has lead back to the start.
 */
export class KeywordAutomaton {
  readonly #symbols = new Uint8Array(128)
  readonly #width: number
  readonly #next: Int16Array
  /** Index + 1 of the longest word that ends in a state, and the state of the next shorter one. */
  readonly #word: Int16Array
  readonly #shorter: Int16Array

  constructor(words: readonly string[]) {
    const lower = words.map((word) => word.toLowerCase())
    let width = 1
    for (const word of lower)
      for (let i = 0; i < word.length; i++) {
        const unit = word.charCodeAt(i)
        if (this.#symbols[unit] === 0) this.#symbols[unit] = width++
      }
    for (let unit = 0x61; unit <= 0x7a; unit++) this.#symbols[unit - 32] = this.#symbols[unit]!
    this.#width = width
    const statesMax = 1 + lower.reduce((sum, word) => sum + word.length, 0)
    this.#next = new Int16Array(statesMax * width)
    this.#word = new Int16Array(statesMax)
    this.#shorter = new Int16Array(statesMax)
    this.#link(this.#plant(lower))
  }

  /** The tree of all words; the number of its states. */
  #plant(words: readonly string[]): number {
    let states = 1
    for (const [index, word] of words.entries()) {
      let state = 0
      for (let i = 0; i < word.length; i++) {
        const edge = state * this.#width + this.#symbols[word.charCodeAt(i)]!
        if (this.#next[edge] === 0) this.#next[edge] = states++
        state = this.#next[edge]!
      }
      this.#word[state] = index + 1
    }
    return states
  }

  /** Where each state goes when its branch of the tree does not go on. */
  #link(states: number): void {
    const fail = new Int16Array(states)
    const queue: number[] = [0]
    for (let head = 0; head < queue.length; head++) {
      const state = queue[head]!
      for (let symbol = 1; symbol < this.#width; symbol++) {
        const edge = state * this.#width + symbol
        const child = this.#next[edge]!
        const back = state === 0 ? 0 : this.#next[fail[state]! * this.#width + symbol]!
        if (child === 0) this.#next[edge] = back
        else {
          fail[child] = back
          this.#shorter[child] = this.#word[back] === 0 ? this.#shorter[back]! : back
          queue.push(child)
        }
      }
    }
  }

  /** The unit behind the word that was found last. */
  end = 0
  #text = ''
  #at = 0
  #to = 0
  #state = 0
  /** The state of the next shorter word with the same end. */
  #more = 0

  /** Starts a search, and says the index of the first word that ends, or −1. One search at a time. */
  start(text: string, { from, to }: { from: number; to: number }): number {
    this.#text = text
    this.#at = from
    this.#to = to
    this.#state = 0
    this.#more = 0
    return this.next()
  }

  /** The index of the next word, in the order of their ends, or −1. */
  next(): number {
    if (this.#more !== 0) return this.#take(this.#more)
    const text = this.#text
    const symbols = this.#symbols
    const next = this.#next
    const width = this.#width
    let state = this.#state
    for (let p = this.#at; p < this.#to; p++) {
      const unit = text.charCodeAt(p)
      state = next[state * width + (unit < 128 ? symbols[unit]! : 0)]!
      const at = this.#word[state] === 0 ? this.#shorter[state]! : state
      if (at === 0) continue
      this.#state = state
      this.#at = p + 1
      this.end = p + 1
      return this.#take(at)
    }
    return -1
  }

  #take(state: number): number {
    this.#more = this.#shorter[state]!
    return this.#word[state]! - 1
  }
}
