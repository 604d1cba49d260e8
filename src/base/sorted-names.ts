/**
 * Names in order, with quick additions and pages: a list of short sorted lists.
 *
 *     [ a b c ] [ d f g ] [ k m ]     e goes between d and f; a page after c begins at d
 *
 * An addition or a removal moves one short list and looks for it by halving: with 100,000 names as with ten. A list that
 * has grown to twice its length is cut into two.
 */
export class SortedNames {
  #lists: string[][]
  #size: number

  constructor(names: Iterable<string>) {
    const sorted = [...names].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0))
    this.#lists = []
    for (let i = 0; i < sorted.length; i += LIST_LENGTH) this.#lists.push(sorted.slice(i, i + LIST_LENGTH))
    this.#size = sorted.length
  }

  get size(): number {
    return this.#size
  }

  add(name: string): void {
    const { at, list } = this.#listOf(name)
    if (list === undefined) {
      this.#lists.push([name])
      this.#size++
      return
    }
    const place = placeOf(list, name)
    if (list[place] === name) return
    list.splice(place, 0, name)
    this.#size++
    if (list.length >= 2 * LIST_LENGTH) this.#lists.splice(at + 1, 0, list.splice(LIST_LENGTH))
  }

  remove(name: string): void {
    const { at, list } = this.#listOf(name)
    const place = list === undefined ? 0 : placeOf(list, name)
    if (list?.[place] !== name) return
    list.splice(place, 1)
    this.#size--
    if (list.length === 0) this.#lists.splice(at, 1)
  }

  /** Names behind this one, in order, that begin so. */
  page({
    after,
    prefix = '',
    limit,
  }: {
    readonly after: string
    readonly prefix?: string
    readonly limit: number
  }): string[] {
    // A name of the prefix alone is none of its names: those have something behind it.
    const from = after < prefix ? prefix : after
    const found: string[] = []
    const { at, list } = this.#listOf(from)
    let place = list === undefined ? 0 : placeOf(list, from)
    for (let i = at; i < this.#lists.length; i++, place = 0) {
      for (const names = this.#lists[i] as string[]; place < names.length; place++) {
        const name = names[place] as string
        if (name === from) continue
        if (!name.startsWith(prefix) || found.length >= limit) return found
        found.push(name)
      }
    }
    return found
  }

  /** The last list that begins at this name or before it; the first one where none does. */
  #listOf(name: string): { readonly at: number; readonly list: string[] | undefined } {
    let [low, high] = [0, this.#lists.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#lists[middle]?.[0] as string) <= name) low = middle + 1
      else high = middle
    }
    const at = Math.max(0, low - 1)
    return { at, list: this.#lists[at] }
  }
}

/** A list of this length is moved in less than a microsecond. */
const LIST_LENGTH = 256

/** Where the name is, or belongs. */
function placeOf(list: readonly string[], name: string): number {
  let [low, high] = [0, list.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((list[middle] as string) < name) low = middle + 1
    else high = middle
  }
  return low
}
