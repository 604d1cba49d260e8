/**
 * Which prompts' beginnings did which replica get, at the other gateways? What one gateway tells of a pool, as a part of its
 * report (`room-report.ts`), and what it has heard of it.
 *
 * Names are told in numbered batches, one for each exchange, and each report has the last few: a report may be lost or be
 * read twice, and a batch counts once. Blocks given to each replica are told as totals since the gateway began, because
 * engines forget by amount: whoever hears them ages what it knows of that replica.
 *
 * Deliberately not: no second try. What is lost costs a hit, no more. Bounds: NAMES_MAX names in a report; names beyond that
 * within one exchange are not told. A text of another form counts as nothing said.
 */
export interface PrefixesTold {
  /** `[replica, blocks since the gateway began]`. */
  readonly given: ReadonlyArray<readonly [replicaId: string, blocks: number]>
  readonly batches: ReadonlyArray<readonly [number: number, names: ReadonlyArray<readonly [string, readonly number[]]>]>
}

/** What another gateway gave to a replica since it was last heard. */
export interface PrefixesHeard {
  readonly replicaId: string
  readonly blocks: number
  readonly hashes: readonly number[]
}

const NAMES_MAX = 512
/** Exchanges in which a batch is told: gateways do not keep step. */
const BATCHES_MAX = 3

interface Heard {
  batch: number
  readonly given: Map<string, number>
}

export class PrefixNews {
  readonly #given = new Map<string, number>()
  #names = new Map<string, number[]>()
  #nameCount = 0
  #batchNumber = 0
  #batches: Array<PrefixesTold['batches'][number]> = []
  #heard = new Map<string, Heard>()

  /** This gateway gave a prompt to a replica: `blocks` that are new there, and names that others should know. */
  placed(replicaId: string, blocks: number, hashes: readonly number[]): void {
    this.#given.set(replicaId, (this.#given.get(replicaId) ?? 0) + blocks)
    const room = NAMES_MAX - this.#nameCount
    if (room <= 0 || hashes.length === 0) return
    const names = this.#names.get(replicaId) ?? []
    this.#names.set(replicaId, names)
    for (let i = 0; i < hashes.length && i < room; i++) names.push(hashes[i] as number)
    this.#nameCount += Math.min(room, hashes.length)
  }

  /** For the next report. Called once for each. */
  tell(replicaIds: ReadonlySet<string>): PrefixesTold {
    for (const id of this.#given.keys()) if (!replicaIds.has(id)) this.#given.delete(id)
    this.#batches.push([++this.#batchNumber, [...this.#names]])
    this.#names = new Map()
    this.#nameCount = 0
    let [first, count] = [this.#batches.length, 0]
    while (first > 0 && this.#batches.length - first < BATCHES_MAX) {
      count += countOf(this.#batches[first - 1] as PrefixesTold['batches'][number])
      if (count > NAMES_MAX) break
      first--
    }
    this.#batches = this.#batches.slice(first)
    return { given: [...this.#given], batches: this.#batches.filter(([, names]) => names.length > 0) }
  }

  /** What the other gateways told, by gateway; those that are not there any more are forgotten. */
  hear(reports: ReadonlyMap<string, { readonly prefixes: PrefixesTold | undefined }>): readonly PrefixesHeard[] {
    const all: PrefixesHeard[] = []
    const heard = new Map<string, Heard>()
    for (const [gatewayId, { prefixes }] of reports) {
      const known = this.#heard.get(gatewayId) ?? { batch: 0, given: new Map<string, number>() }
      heard.set(gatewayId, known)
      if (prefixes !== undefined) hearOne(known, prefixes, all)
    }
    this.#heard = heard
    return all
  }
}

function hearOne(known: Heard, { given, batches }: PrefixesTold, into: PrefixesHeard[]): void {
  const present = new Set<string>()
  for (const [replicaId, total] of given) {
    present.add(replicaId)
    // What was given before the first word was heard is not known to be there either.
    const blocks = total - (known.given.get(replicaId) ?? total)
    known.given.set(replicaId, total)
    if (blocks > 0) into.push({ replicaId, blocks, hashes: [] })
  }
  for (const id of known.given.keys()) if (!present.has(id)) known.given.delete(id)
  for (const [number, names] of batches) {
    if (number <= known.batch) continue
    known.batch = number
    for (const [replicaId, hashes] of names) into.push({ replicaId, blocks: 0, hashes })
  }
}

const countOf = ([, names]: PrefixesTold['batches'][number]): number =>
  names.reduce((sum, [, hashes]) => sum + hashes.length, 0)

export const writePrefixes = ({ given, batches }: PrefixesTold): unknown => [given, batches]

/** Undefined for what a gateway of another version says. Throws for what is no such text. */
export function readPrefixes(value: unknown): PrefixesTold | undefined {
  if (value === undefined) return undefined
  const [given, batches] = value as [unknown[][], [unknown, [unknown, unknown[]][]][]]
  let left = NAMES_MAX
  return {
    given: given.map(([id, blocks]) => [String(id), whole(blocks)]),
    batches: batches.map(([number, names]) => [
      whole(number),
      names.map(([id, hashes]) => {
        left -= hashes.length
        if (left < 0) throw new Error('too many names')
        return [String(id), hashes.map(whole)] as const
      }),
    ]),
  }
}

function whole(value: unknown): number {
  if (!Number.isSafeInteger(value) || (value as number) < 0) throw new Error('not a whole number')
  return value as number
}
