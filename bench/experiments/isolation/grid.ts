import { Rng } from '../../../src/base/rng.ts'
import { coveringRows, type Row } from './covering.ts'

/** What the offender of a cell does, one value of each dimension. */
export interface Offence {
  readonly prompt: number
  /** Tokens of an answer, or short answers with this percentage of long ones among them. */
  readonly answer: number | 'mixed5' | 'mixed30'
  /** `lying` asks for far more than any answer has. */
  readonly maxTokens: 'declared' | 'unset' | 'lying'
  /** When clients leave: before or about the first token, or in the middle of the answer. */
  readonly client: 'stays' | 'early' | 'late'
  readonly band: 'interactive' | 'standard' | 'offline'
  readonly replicas: number
  /** Multiples of its share that it asks for; `bursts` are five seconds of twenty times its share, every twenty seconds. */
  readonly times: 2 | 10 | 50 | 'bursts'
  /** One key, sixteen keys, or four tenants of an org. */
  readonly from: 'key' | 'keys' | 'org'
}

export interface Cell {
  readonly id: string
  readonly offence: Offence
  /** Requests of the offender a second, where the cell says so itself instead of by multiples of a share. */
  readonly ratePerS?: number
  /** Two calm tenants send this many chats a second for each replica. */
  readonly calmPerS?: number
  /** Seconds in which the offender is there, where not by the length of its answers. */
  readonly seconds?: number
  /** Milliseconds after which all clients of the offender leave. */
  readonly leaveAfterMs?: number
}

const DIMENSIONS = {
  prompt: [100, 1_000, 8_000, 16_000, 30_000],
  answer: [1, 50, 500, 2_000, 8_000, 'mixed5', 'mixed30'],
  maxTokens: ['declared', 'unset', 'lying'],
  client: ['stays', 'early', 'late'],
  band: ['interactive', 'standard', 'offline'],
  replicas: [1, 2, 8],
  times: [2, 10, 50, 'bursts'],
  from: ['key', 'keys', 'org'],
} as const satisfies { readonly [Name in keyof Offence]: ReadonlyArray<Offence[Name]> }

const NAMES = Object.keys(DIMENSIONS) as Array<keyof Offence>

/** For each dimension the number of its values. */
export const SIZES = NAMES.map((name) => DIMENSIONS[name].length)

/** Each pair of values is in this many cells: about a hundred cells together. */
const PAIR_TIMES = 3
/** The design is the same for all seeds of the traffic, so that a cell's name always means the same. */
const DESIGN_SEED = 1

export const gridRows = (): Row[] => coveringRows(SIZES, PAIR_TIMES, DESIGN_SEED)

export const gridCells = (): Cell[] => cellsOf(gridRows())

/** Cells with every value drawn alone, none twice. */
export function drawnCells(count: number, seed: number): Cell[] {
  const rng = Rng.stream(seed, 'drawn cells')
  const rows = new Map<string, Row>()
  while (rows.size < count) {
    const row = SIZES.map((size) => rng.below(size))
    rows.set(row.join(' '), row)
  }
  return cellsOf([...rows.values()])
}

function cellsOf(rows: readonly Row[]): Cell[] {
  const cells = new Map<string, Cell>()
  for (const row of rows) {
    const offence = offenceOf(row)
    const id = cellId(offence)
    cells.set(id, { id, offence })
  }
  return [...cells.values()]
}

/** Any cell of the grid by its name, whether or not the design has it. */
export function cellNamed(id: string): Cell | undefined {
  const parts = id.split('-')
  const row = NAMES.map((name, i) => DIMENSIONS[name].findIndex((value) => wordOf(name, value) === parts[i]))
  if (parts.length !== NAMES.length || row.includes(-1)) return undefined
  return { id, offence: offenceOf(row) }
}

const offenceOf = (row: Row): Offence =>
  Object.fromEntries(NAMES.map((name, i) => [name, DIMENSIONS[name][row[i] as number]])) as unknown as Offence

/** As `p16k-a2k-unset-stays-standard-r1-x10-key`. */
const cellId = (offence: Offence): string => NAMES.map((name) => wordOf(name, offence[name])).join('-')

const LETTERS: Partial<Record<keyof Offence, string>> = { prompt: 'p', answer: 'a', replicas: 'r', times: 'x' }

function wordOf(name: keyof Offence, value: string | number): string {
  if (typeof value === 'string') return value
  return `${LETTERS[name] ?? ''}${value >= 1_000 ? `${value / 1_000}k` : value}`
}
