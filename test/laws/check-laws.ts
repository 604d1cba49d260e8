import type { Arrived, AttemptEnded, Entry, Granted, Settled } from '../../src/domain/entry.ts'

/**
 * Which laws does this journal break? A pure function of what was recorded, so that every test and every simulation
 * can ask it, whatever the world was made of.
 *
 *   L1  each ticket ends once; arrived = settled + live
 *   L2  leases granted = returned + held, never over the limit
 *   L5  arrivedAt ≤ admittedAt ≤ grantedAt ≤ firstTokenAt ≤ settledAt
 *
 * and that a ticket's own entries agree with each other: what is told in the middle is what the end sums up.
 */
export interface Violation {
  readonly law: 'L1' | 'L2' | 'L5'
  readonly ticketId: string
  readonly text: string
}

export interface LawOptions {
  /** The run is over: a ticket that is still alive, or a lease that is still held, is a violation. */
  readonly isOver?: boolean
  /** Most leases at once on this replica; unchecked when absent. */
  readonly concurrencyMaxOf?: (replicaId: string) => number
}

interface Story {
  arrived: Arrived[]
  admittedAt: number[]
  granted: Granted[]
  ended: AttemptEnded[]
  settled: Settled[]
  /** Something happened after the end. */
  afterEnd: string[]
}

export function checkLaws(entries: readonly Entry[], options: LawOptions = {}): Violation[] {
  const violations = checkLimits(entries, options)
  for (const [ticketId, story] of storiesOf(entries)) {
    const tell = (law: Violation['law'], text: string): void => void violations.push({ law, ticketId, text })
    checkEndings(story, options, tell)
    checkLeases(story, options, tell)
    checkStamps(story, tell)
    checkSummary(story, tell)
  }
  return violations
}

type Tell = (law: Violation['law'], text: string) => void

function storiesOf(entries: readonly Entry[]): Map<string, Story> {
  const stories = new Map<string, Story>()
  for (const entry of entries) {
    if (!('ticketId' in entry) || entry.ticketId === undefined || entry.kind === 'fault-seen') continue
    let story = stories.get(entry.ticketId)
    if (story === undefined) {
      story = { arrived: [], admittedAt: [], granted: [], ended: [], settled: [], afterEnd: [] }
      stories.set(entry.ticketId, story)
    }
    if (story.settled.length > 0) story.afterEnd.push(entry.kind)
    if (entry.kind === 'arrived') story.arrived.push(entry)
    else if (entry.kind === 'admitted') story.admittedAt.push(entry.at)
    else if (entry.kind === 'granted') story.granted.push(entry)
    else if (entry.kind === 'attempt-ended') story.ended.push(entry)
    else if (entry.kind === 'settled') story.settled.push(entry)
  }
  return stories
}

function checkEndings({ arrived, settled, afterEnd }: Story, { isOver }: LawOptions, tell: Tell): void {
  if (arrived.length !== 1) tell('L1', `it arrived ${arrived.length} times`)
  if (settled.length > 1) tell('L1', `it was settled ${settled.length} times`)
  if (settled.length === 0 && isOver === true) tell('L1', 'it never ended')
  if (afterEnd.length > 0) tell('L1', `after its end came ${afterEnd.join(', ')}`)
}

function checkLeases({ granted, ended, settled }: Story, { isOver }: LawOptions, tell: Tell): void {
  granted.forEach((grant, i) => {
    if (grant.attempt !== i + 1) tell('L2', `turn ${i + 1} is counted as attempt ${grant.attempt}`)
    const returns = ended.filter((end) => end.attempt === grant.attempt && end.replicaId === grant.replicaId)
    if (returns.length > 1) tell('L2', `the lease of attempt ${grant.attempt} was returned ${returns.length} times`)
    const mustBeBack = isOver === true || settled.length > 0 || i < granted.length - 1
    if (returns.length === 0 && mustBeBack) tell('L2', `the lease of attempt ${grant.attempt} was never returned`)
    for (const end of returns) if (end.at < grant.at) tell('L2', `attempt ${grant.attempt} ended before it began`)
  })
  for (const end of ended) {
    const isKnown = granted.some((grant) => grant.attempt === end.attempt && grant.replicaId === end.replicaId)
    if (!isKnown) tell('L2', `attempt ${end.attempt} on ${end.replicaId} ended and was never granted`)
  }
}

function checkStamps({ arrived, admittedAt, granted, settled }: Story, tell: Tell): void {
  const end = settled[0]
  if (end === undefined) return
  const stamps: ReadonlyArray<readonly [name: string, at: number | undefined]> = [
    ['arrivedAt', end.arrivedAt],
    ['admittedAt', end.admittedAt],
    ['grantedAt', end.grantedAt],
    ['firstTokenAt', end.firstTokenAt],
    ['lastTokenAt', end.lastTokenAt],
    ['settledAt', end.at],
  ]
  const known = stamps.filter(([, at]) => at !== undefined) as Array<[string, number]>
  for (let i = 1; i < known.length; i++) {
    const [before, beforeAt] = known[i - 1]!
    const [after, afterAt] = known[i]!
    if (afterAt < beforeAt) tell('L5', `${after} (${afterAt}) is before ${before} (${beforeAt})`)
  }
  if (arrived[0] !== undefined && arrived[0].at !== end.arrivedAt) tell('L5', 'arrivedAt is not when it arrived')
  if (end.admittedAt !== admittedAt[0]) tell('L5', 'admittedAt is not when it was admitted')
  if (end.grantedAt !== granted.at(-1)?.at) tell('L5', 'grantedAt is not when it was last granted a turn')
}

function checkSummary({ granted, ended, settled }: Story, tell: Tell): void {
  const end = settled[0]
  if (end === undefined) return
  if (end.attempts !== granted.length) tell('L1', `it says ${end.attempts} attempts and had ${granted.length}`)
  if (end.outcome === 'rejected' && (end.admittedAt !== undefined || granted.length > 0)) {
    tell('L1', 'it was rejected after it had been admitted')
  }
  if (end.outcome === 'completed' && ended.at(-1)?.ending !== 'finished') tell('L1', 'it completed without finishing')
  const isTold = end.outcome !== 'completed' && end.outcome !== 'cancelled'
  if (isTold !== (end.refusal !== undefined)) tell('L1', `its outcome is ${end.outcome}, with or without a reason`)
  if (end.firstTokenAt !== undefined && granted.length === 0) tell('L5', 'it had a token without a turn')
  const { promptTokens, cachedTokens, outputTokens } = end.usage
  if (Math.min(promptTokens, cachedTokens, outputTokens) < 0 || cachedTokens > promptTokens) {
    tell('L1', `its usage cannot be: ${JSON.stringify(end.usage)}`)
  }
}

function checkLimits(entries: readonly Entry[], { concurrencyMaxOf }: LawOptions): Violation[] {
  const violations: Violation[] = []
  const held = new Map<string, number>()
  for (const entry of entries) {
    if (entry.kind === 'granted') {
      const count = (held.get(entry.replicaId) ?? 0) + 1
      held.set(entry.replicaId, count)
      const max = concurrencyMaxOf?.(entry.replicaId) ?? Number.POSITIVE_INFINITY
      if (count > max) {
        const text = `${entry.replicaId} has ${count} leases, and room for ${max}`
        violations.push({ law: 'L2', ticketId: entry.ticketId, text })
      }
    } else if (entry.kind === 'attempt-ended') held.set(entry.replicaId, (held.get(entry.replicaId) ?? 0) - 1)
  }
  return violations
}
