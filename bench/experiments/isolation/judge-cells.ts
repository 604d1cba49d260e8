import type { CalmSeen, CellSeen } from './play-cell.ts'

/** What must hold in every cell, over all seeds together. */
export const CRITERIA = {
  /** Good answers of each calm tenant, of those that it gets when the offender is not there. */
  calmGoodMin: 0.99,
  /** p95 of each calm tenant's first tokens ÷ the promised time. */
  firstTokenMax: 1,
  /** What the offender gets, of its share of what it gets alone. */
  gotMin: 0.9,
  /** Total good work, of what it was before: isolation is not bought with idle engines. */
  workMin: 0.97,
}

export type Criterion = 'calm good' | 'first token' | 'offender' | 'good work' | 'laws'

export interface Judged {
  readonly id: string
  readonly seeds: number
  /** Of the calm tenant with the fewest, and of its worst seed. */
  readonly calmGood: number
  readonly calmGoodWorst: number
  readonly firstToken: number
  /** Calm requests that are good alone. */
  readonly refused: number
  readonly late: number
  /** Of the refused: requests of the offender were admitted within half a second. */
  readonly refusedBeside: number
  readonly times: number
  readonly got: number
  readonly goodWorkS: number
  /** Total good work ÷ what it was before; undefined where that is not known. */
  readonly work: number | undefined
  readonly calmGoodBefore: number | undefined
  readonly cpuS: number
  readonly short: readonly Criterion[]
  /** How far the worst criterion is missed, in parts of its bound: cells are ordered by it. Negative where all hold. */
  readonly missed: number
}

/** `before` are the same seeds of the same cell, on another tree. */
export function judgeCell(seen: readonly CellSeen[], before?: readonly CellSeen[]): Judged {
  const first = seen[0]
  if (first === undefined) throw new Error('a cell is judged by at least one seed')
  const calm = first.calm.map((_, i) => pooled(seen.map((one) => one.calm[i] as CalmSeen)))
  const sum = (of: (one: CalmSeen) => number): number => calm.reduce((total, one) => total + of(one), 0)
  const goodWorkS = totalOf(seen, ({ goodWorkS: work }) => work)
  const calmGood = Math.min(...calm.map(goodRatio))
  const firstToken = Math.max(...calm.map(({ ttftMs, promisedMs }) => p95Of(ttftMs) / promisedMs))
  const got = totalOf(seen, (one) => one.got) / seen.length
  const workBefore = before === undefined ? undefined : totalOf(before, (one) => one.goodWorkS)
  const work = workBefore === undefined || workBefore === 0 ? undefined : goodWorkS / workBefore
  const misses: ReadonlyArray<readonly [Criterion, number]> = [
    ['calm good', 1 - calmGood / CRITERIA.calmGoodMin],
    ['first token', firstToken / CRITERIA.firstTokenMax - 1],
    ['offender', 1 - got / CRITERIA.gotMin],
    ['good work', work === undefined ? -1 : 1 - work / CRITERIA.workMin],
    ['laws', seen.some(({ laws }) => laws.length > 0) ? 1 : -1],
  ]
  return {
    id: first.id,
    seeds: seen.length,
    calmGood,
    calmGoodWorst: Math.min(...seen.flatMap((one) => one.calm.map(goodRatio))),
    firstToken,
    refused: sum(({ refused }) => refused),
    late: sum(({ late }) => late),
    refusedBeside: sum(({ refusedBeside }) => refusedBeside),
    times: first.times,
    got,
    goodWorkS,
    work,
    calmGoodBefore: before === undefined ? undefined : judgeCell(before).calmGood,
    cpuS: totalOf(seen, ({ cpuS }) => cpuS),
    short: misses.filter(([, by]) => by > 0).map(([criterion]) => criterion),
    missed: Math.max(...misses.map(([, by]) => by)),
  }
}

const totalOf = (seen: readonly CellSeen[], of: (one: CellSeen) => number): number =>
  seen.reduce((sum, one) => sum + of(one), 0)

/** A tenant that gets nothing alone loses nothing. */
const goodRatio = ({ good, aloneGood }: Pick<CalmSeen, 'good' | 'aloneGood'>): number =>
  aloneGood === 0 ? 1 : good / aloneGood

function pooled(all: readonly CalmSeen[]): CalmSeen {
  const sum = (of: (one: CalmSeen) => number): number => all.reduce((total, one) => total + of(one), 0)
  return {
    arrived: sum(({ arrived }) => arrived),
    good: sum(({ good }) => good),
    aloneGood: sum(({ aloneGood }) => aloneGood),
    refused: sum(({ refused }) => refused),
    late: sum(({ late }) => late),
    refusedBeside: sum(({ refusedBeside }) => refusedBeside),
    promisedMs: all[0]?.promisedMs ?? 0,
    ttftMs: all.flatMap(({ ttftMs }) => ttftMs).toSorted((a, b) => a - b),
  }
}

/** Nearest rank; nothing that came is late where nothing came. */
export const p95Of = (ascending: readonly number[]): number =>
  ascending[Math.max(0, Math.ceil(0.95 * ascending.length) - 1)] ?? 0
