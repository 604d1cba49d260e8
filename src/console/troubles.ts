import type { Instant } from '../base/clock.ts'
import { US_PER_MS } from '../base/clock.ts'
import type { Entry } from '../domain/entry.ts'

/** What is out of order now, and since when: parts that the platform leans on and that are away, silent or without a leader. */
export interface ConsoleTrouble {
  readonly what: string
  /** Milliseconds, as the feed's other times. */
  readonly since: number
  readonly text: string
}

/** What a journal entry says of one part; `text` undefined: it is in order. */
interface Said {
  readonly what: string
  readonly text: string | undefined
}

const TROUBLES_MAX = 50

export class Troubles {
  readonly #open = new Map<string, ConsoleTrouble>()

  /** What has begun or ended by this entry, in words; the rest is as it was. */
  take(entry: Entry): readonly string[] {
    return saidBy(entry).flatMap(({ what, text }) => this.#note(entry.at, what, text))
  }

  /** Those that began last come first. */
  view(): readonly ConsoleTrouble[] {
    return [...this.#open.values()].reverse()
  }

  #note(at: Instant, what: string, text: string | undefined): string[] {
    const known = this.#open.get(what)
    if (text === undefined) {
      this.#open.delete(what)
      return known === undefined ? [] : [`${what}: in order again`]
    }
    if (known === undefined && this.#open.size >= TROUBLES_MAX) return []
    this.#open.set(what, { what, since: known?.since ?? at / US_PER_MS, text })
    return known === undefined ? [`${what}: ${text}`] : []
  }
}

function saidBy(entry: Entry): readonly Said[] {
  const when = (isIn: boolean, what: string, text: string): Said => ({ what, text: isIn ? text : undefined })
  switch (entry.kind) {
    case 'sharing-changed':
      return [when(entry.state === 'alone', 'shared limits', `at the safe share: ${entry.because}`)]
    case 'sharing-reported':
      return [
        when(
          entry.silentCount > 0,
          'other gateways',
          `${entry.silentCount} of ${entry.gatewayCount} gateways are not heard`,
        ),
      ]
    case 'leader-changed':
      return [when(entry.role === 'nobody', `leader of ${entry.name}`, `nobody leads: ${entry.because}`)]
    case 'breaker-changed':
      return [when(entry.state === 'open', entry.what, `not used for a while: ${entry.because ?? 'it failed'}`)]
    case 'ledger-reported':
      return [when(entry.keeper.isStoreAway, 'ledger', 'the database is away; costs wait on the disk')]
    case 'audit-reported':
      return [when(entry.spool.isInTrouble, 'audit', 'its disk is in trouble')]
    case 'replica-reported':
      return [when(!entry.isReady, `replica ${entry.replicaId}`, `does not answer: ${entry.because}`)]
    case 'replica-denied':
      return [when(entry.isDenied, `key or quota at ${entry.replicaId}`, entry.because)]
    case 'fleet-changed':
      if (entry.what !== 'replica-removed') return []
      return [
        { what: `replica ${entry.name}`, text: undefined },
        { what: `key or quota at ${entry.name}`, text: undefined },
      ]
    default:
      return []
  }
}
