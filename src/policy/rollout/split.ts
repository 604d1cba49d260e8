import { fnv1a32 } from '../../base/rng.ts'

/**
 * Which release does this request get?
 *
 * First pins: a rule that names a tenant, a key or a header decides alone, the first that fits. Then the weighted
 * split, sticky: the hash of the tenant or the session, with the rollout's name, is a point in [0, 1), and the releases
 * share that line in order of their list. A canary that grows from 5 to 25 % keeps the first 5: nobody goes to and fro.
 * Another rollout has another name, so the same tenants are not always the first to suffer.
 *
 * By session the judge sees both releases with every tenant; by tenant, a tenant is all here or all there, and
 * comparisons wait until one has been on both sides. Without a session the key stands in.
 *
 * Deliberately not: no memory; the same question has the same answer in every process.
 * Example: canary 5 %, stable 95 %. A session at 0.031 gets the canary at every step from 5 % on; one at 0.4 when the
 * canary has more than 40 %.
 */
export interface ReleaseShare {
  readonly release: string
  /** Shares of one split add up to 1. */
  readonly weight: number
}

export interface Pin {
  readonly release: string
  readonly tenantId?: string
  readonly keyId?: string
  /** Lower case; without a value any value fits. */
  readonly header?: { readonly name: string; readonly value?: string }
}

export interface Split {
  /** Names the rollout: another name, another order of the sessions. */
  readonly name: string
  readonly stickyBy: 'session' | 'tenant'
  /** The canary first: what comes first keeps its requests while it grows. */
  readonly shares: readonly ReleaseShare[]
  readonly pins: readonly Pin[]
}

export interface SplitAsk {
  readonly tenantId: string
  readonly keyId: string
  readonly session: string | undefined
  readonly headers: Readonly<Record<string, string | undefined>>
}

export interface ReleaseChoice {
  readonly release: string
  readonly because: 'pinned' | 'split' | 'only release'
}

export function chooseRelease(split: Split, ask: SplitAsk): ReleaseChoice {
  const pin = split.pins.find((rule) => isPinned(rule, ask))
  if (pin !== undefined) return { release: pin.release, because: 'pinned' }
  const { shares } = split
  if (shares.length === 1) return { release: (shares[0] as ReleaseShare).release, because: 'only release' }
  const point = pointOf(split, ask)
  let end = 0
  for (const { release, weight } of shares) {
    end += weight
    if (point < end) return { release, because: 'split' }
  }
  return { release: (shares.at(-1) as ReleaseShare).release, because: 'split' }
}

/** A pin that names nothing fits nobody: an empty rule must not move everybody. */
function isPinned(pin: Pin, ask: SplitAsk): boolean {
  if (pin.tenantId === undefined && pin.keyId === undefined && pin.header === undefined) return false
  if (pin.tenantId !== undefined && pin.tenantId !== ask.tenantId) return false
  if (pin.keyId !== undefined && pin.keyId !== ask.keyId) return false
  if (pin.header === undefined) return true
  const value = ask.headers[pin.header.name]
  return value !== undefined && (pin.header.value === undefined || pin.header.value === value)
}

function pointOf(split: Split, ask: SplitAsk): number {
  const sticky = split.stickyBy === 'tenant' ? ask.tenantId : `${ask.tenantId}\n${ask.session ?? ask.keyId}`
  // FNV alone puts names that differ in their last letter close together; the finalizer is MurmurHash3's.
  let h = fnv1a32(`${split.name}\n${sticky}`)
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return ((h ^ (h >>> 16)) >>> 0) / 2 ** 32
}
