import { addedQueue } from './console-queue.ts'
import type { ConsoleParty, ConsolePool, ConsoleReplica, ConsoleView } from './console-view.ts'
import type { ConsoleTrial } from './trial-counts.ts'
import type { ConsoleTrouble } from './troubles.ts'

/**
 * One view of what several gateways see: counts add up, of pressures and times the largest counts, of a replica's health
 * the worst. Pure. Each gateway names its busiest parties only, so sums of parties beyond these are lower bounds.
 */
type MergedPart = Omit<ConsoleView, 'events' | 'second' | 'gateways'>

const SHOWN_MAX = 20

export function mergedView(own: ConsoleView, others: readonly ConsoleView[]): MergedPart {
  const all = [own, ...others]
  const { events: _events, second: _second, gateways: _gateways, ...rest } = own
  if (others.length === 0) return rest
  const parties = addedParties(all.flatMap(({ tenants }) => tenants))
  const tenants = busiest(parties)
  const known = Math.max(parties.length, ...all.map((view) => view.tenants.length + view.others))
  return {
    ...rest,
    total: addedCounts(all.map(({ total }) => total)),
    pools: grouped(all.flatMap(({ pools }) => pools)).map(addedPool),
    replicas: grouped(all.flatMap(({ replicas }) => replicas)).map(worstReplica),
    tenants,
    others: known - tenants.length,
    models: busiest(addedParties(all.flatMap(({ models }) => models))),
    queue: addedQueue(all.map(({ queue }) => queue)),
    troubles: addedTroubles(own, others),
    trials: addedTrials(all.flatMap(({ trials }) => trials)),
    firstTokenP95Ms: largest(all.map(({ firstTokenP95Ms }) => firstTokenP95Ms)),
    eventsLeftOut: all.reduce((sum, { eventsLeftOut }) => sum + eventsLeftOut, 0),
  }
}

export function addedCounts(lists: ReadonlyArray<readonly number[]>): readonly number[] {
  const [first = [], ...others] = lists
  return first.map((count, i) => others.reduce((sum, list) => sum + (list[i] ?? 0), count))
}

export function addedParties(parties: readonly ConsoleParty[]): readonly ConsoleParty[] {
  const byName = new Map<string, ConsoleParty>()
  for (const party of parties) {
    const known = byName.get(party.name)
    const counts = known === undefined ? party.counts : addedCounts([known.counts, party.counts])
    byName.set(party.name, { name: party.name, counts })
  }
  return [...byName.values()]
}

export const busiest = (parties: readonly ConsoleParty[]): readonly ConsoleParty[] =>
  parties
    .toSorted((a, b) => (b.counts[0] as number) - (a.counts[0] as number) || (a.name < b.name ? -1 : 1))
    .slice(0, SHOWN_MAX)

/** Those with the same id together, in the order in which they came. */
function grouped<T extends { readonly id: string }>(items: readonly T[]): ReadonlyArray<readonly [T, ...T[]]> {
  const byId = new Map<string, [T, ...T[]]>()
  for (const item of items) {
    const known = byId.get(item.id)
    if (known === undefined) byId.set(item.id, [item])
    else known.push(item)
  }
  return [...byId.values()]
}

function addedPool([first, ...others]: readonly [ConsolePool, ...ConsolePool[]]): ConsolePool {
  const all = [first, ...others]
  const shares = new Map<string, number>()
  for (const { waiting } of all)
    for (const [tenant, share] of waiting) shares.set(tenant, Math.max(share, shares.get(tenant) ?? 0))
  return {
    ...first,
    queued: all.reduce((sum, { queued }) => sum + queued, 0),
    held: all.reduce((sum, { held }) => sum + held, 0),
    ready: Math.max(...all.map(({ ready }) => ready)),
    pressure: Math.max(...all.map(({ pressure }) => pressure)),
    isShedding: all.some(({ isShedding }) => isShedding),
    waiting: Array.from(shares).slice(0, WAITING_SHOWN_MAX),
    waitingCount: Math.max(shares.size, ...all.map(({ waitingCount }) => waitingCount)),
  }
}

const WAITING_SHOWN_MAX = 3

/** The first gateway that cannot use it says why. */
function worstReplica([first, ...others]: readonly [ConsoleReplica, ...ConsoleReplica[]]): ConsoleReplica {
  const all = [first, ...others]
  return all.find(({ isReady }) => !isReady) ?? all.find(({ health }) => health !== 'steady') ?? first
}

/** What is out of order here, and what is so elsewhere only. */
function addedTroubles(own: ConsoleView, others: readonly ConsoleView[]): readonly ConsoleTrouble[] {
  const here = new Set(own.troubles.map(({ what }) => what))
  const elsewhere = new Map<string, ConsoleTrouble>()
  for (const trouble of others.flatMap(({ troubles }) => troubles)) {
    const known = elsewhere.get(trouble.what)
    if (!here.has(trouble.what) && (known === undefined || known.since > trouble.since))
      elsewhere.set(trouble.what, { ...trouble, text: `${trouble.text} (at another gateway)` })
  }
  return [...own.troubles, ...elsewhere.values()]
}

function addedTrials(trials: readonly ConsoleTrial[]): readonly ConsoleTrial[] {
  const byRelease = new Map<string, ConsoleTrial>()
  for (const trial of trials) {
    const name = `${trial.model}\n${trial.release}`
    const known = byRelease.get(name)
    byRelease.set(name, known === undefined ? trial : addedTrial(known, trial))
  }
  return [...byRelease.values()]
}

const addedTrial = (a: ConsoleTrial, b: ConsoleTrial): ConsoleTrial => ({
  ...a,
  copies: a.copies + b.copies,
  failed: a.failed + b.failed,
  compared: a.compared + b.compared,
  equal: a.equal + b.equal,
  sameWords: a.sameWords + b.sameWords,
  items: a.items + b.items,
  score: a.score + b.score,
})

function largest(values: ReadonlyArray<number | undefined>): number | undefined {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}

/** A second: time, arrived, completed, refused, broken, queued, pressure, p95. */
export type ConsoleSecond = readonly number[]
const ADDED = 6

/** Seconds of several gateways as those of one, the oldest first. */
export function mergedSeconds(lists: ReadonlyArray<readonly ConsoleSecond[]>, countMax: number): ConsoleSecond[] {
  const [own = [], ...others] = lists
  if (others.length === 0) return own.slice(-countMax)
  const byTime = new Map<number, ConsoleSecond>()
  for (const second of lists.flat()) {
    const known = byTime.get(second[0] as number)
    const sum = (value: number, i: number): number =>
      i === 0 ? value : i < ADDED ? value + (known?.[i] ?? 0) : Math.max(value, known?.[i] ?? 0)
    byTime.set(second[0] as number, known === undefined ? second : second.map(sum))
  }
  return [...byTime.values()].sort((a, b) => (a[0] as number) - (b[0] as number)).slice(-countMax)
}
