import { assert } from '../../base/assert.ts'
import { type Instant, secondsToUs } from '../../base/clock.ts'
import type { AbuseKind, AbuseResponse } from '../../domain/screening.ts'

/**
 * What do a key's requests show together that none of them shows alone?
 *
 * *Blocks*: a level that rises by one with every blocked request and leaks with time. Over a bound the key is paused, and
 * each further block doubles the pause: a person who is blocked by mistake hits the bound seldom and waits seconds; a
 * script that searches for a way around the screens waits minutes for each try. *Sweeps*: one prompt in many variations
 * ("list customer 1", "list customer 2", …), which is how a model, a corpus or a system prompt is read out. Prompts are
 * compared by signatures (eight numbers of which near-identical texts share most); equal ones are not counted, because a
 * repeated request is a retry or a probe.
 *
 * A template with a slot looks like a sweep, and many honest programs send one. So a sweep is told once in a while, and
 * pauses a key only shortly. Requests that come during a pause are refused and counted nowhere: a pause ends.
 *
 * Bounds: `KEYS_MAX` keys, the one that was quiet for longest is forgotten first; `RECENT` signatures of each.
 *
 * Example: 5 blocks in ten seconds: the fifth pauses the key for 5 s, the sixth for 10 s, … the twelfth for 10 minutes.
 * After two quiet minutes four of the level's blocks have leaked.
 */
export interface ConductOptions {
  /** Blocks at which a pause begins. */
  readonly blocksMax: number
  /** In which one block leaks. */
  readonly leakUs: number
  readonly pauseUsMin: number
  readonly pauseUsMax: number
  /** Near-identical prompts of the recent ones that make a sweep, and the time they must lie in. */
  readonly sweepMin: number
  readonly sweepUs: number
  readonly sweepPauseUs: number
}

export const CONDUCT_DEFAULTS: ConductOptions = {
  // A person who rephrases a blocked prompt does so three or four times.
  blocksMax: 5,
  leakUs: secondsToUs(30),
  pauseUsMin: secondsToUs(5),
  pauseUsMax: secondsToUs(600),
  // Three of four recent prompts: a conversation that repeats its beginning has fewer.
  sweepMin: 48,
  sweepUs: secondsToUs(600),
  sweepPauseUs: secondsToUs(30),
}

/** A pause of this length or more is called `paused`, a shorter one `slowed`. */
const LONG_PAUSE_US = secondsToUs(60)
/** Blocks over the bound that are remembered: enough for the longest pause, so that a long abuse is forgotten as soon. */
const LEVEL_BEYOND_MAX = 8
/** Keys that are remembered; about 3 kB each where prompts are compared. */
const KEYS_MAX = 10_000
/** Signatures kept of a key. */
const RECENT = 64
/** Numbers of a signature, and how many of them near-identical prompts share. */
export const SIGNATURE_LANES = 8
const SHARED_LANES_MIN = 6

/** Something to be told to the operator. */
export interface ConductNotice {
  readonly abuse: AbuseKind
  readonly response: AbuseResponse
  readonly count: number
  readonly pauseUs: number
}

interface Conduct {
  level: number
  levelAt: Instant
  pausedUntil: Instant
  readonly signatures: Uint32Array
  readonly seenAt: Float64Array
  next: number
  sweepToldAt: Instant | undefined
}

export class KeyConducts {
  readonly #options: ConductOptions
  readonly #keysMax: number
  /** The order of insertion is the order of use. */
  readonly #byKey = new Map<string, Conduct>()

  constructor(options: ConductOptions = CONDUCT_DEFAULTS, keysMax = KEYS_MAX) {
    this.#options = options
    this.#keysMax = keysMax
  }

  get keyCount(): number {
    return this.#byKey.size
  }

  /** Microseconds until the key may come back; 0 when it is not paused. */
  pauseUs(now: Instant, key: string): number {
    return Math.max(0, (this.#byKey.get(key)?.pausedUntil ?? 0) - now)
  }

  /** A request of the key was blocked. `mayPause`: the tenant wants more than to be told. */
  observeBlock(now: Instant, key: string, mayPause: boolean): ConductNotice | undefined {
    const { blocksMax, leakUs, pauseUsMin, pauseUsMax } = this.#options
    const conduct = this.#of(now, key)
    const leaked = Math.max(0, conduct.level - (now - conduct.levelAt) / leakUs)
    conduct.level = Math.min(blocksMax + LEVEL_BEYOND_MAX, leaked + 1)
    conduct.levelAt = now
    // Five blocks in a row are five, though a little of the first has leaked.
    const count = Math.round(conduct.level)
    const over = count - blocksMax
    if (over < 0) return undefined
    if (!mayPause) return { abuse: 'blocks', response: 'told', count, pauseUs: 0 }
    const pauseUs = Math.min(pauseUsMax, pauseUsMin * 2 ** over)
    return this.#pause(now, conduct, { abuse: 'blocks', count, pauseUs })
  }

  /** A prompt of the key, by its signature. */
  observePrompt(now: Instant, key: string, signature: Uint32Array, mayPause: boolean): ConductNotice | undefined {
    assert(signature.length === SIGNATURE_LANES, 'a signature has all its lanes')
    const { sweepMin, sweepUs, sweepPauseUs } = this.#options
    const conduct = this.#of(now, key)
    const count = countAlike(now - sweepUs, conduct, signature) + 1
    conduct.signatures.set(signature, conduct.next * SIGNATURE_LANES)
    conduct.seenAt[conduct.next] = now
    conduct.next = (conduct.next + 1) % RECENT
    if (count < sweepMin) return undefined
    // Told once in the time that a sweep is seen over, not with every further prompt.
    if (conduct.sweepToldAt !== undefined && now - conduct.sweepToldAt < sweepUs) return undefined
    conduct.sweepToldAt = now
    if (!mayPause) return { abuse: 'sweep', response: 'told', count, pauseUs: 0 }
    return this.#pause(now, conduct, { abuse: 'sweep', count, pauseUs: sweepPauseUs })
  }

  #pause(now: Instant, conduct: Conduct, notice: Omit<ConductNotice, 'response'>): ConductNotice {
    conduct.pausedUntil = Math.max(conduct.pausedUntil, now + notice.pauseUs)
    return { ...notice, response: notice.pauseUs >= LONG_PAUSE_US ? 'paused' : 'slowed' }
  }

  #of(now: Instant, key: string): Conduct {
    const known = this.#byKey.get(key)
    const conduct = known ?? {
      level: 0,
      levelAt: now,
      pausedUntil: 0,
      signatures: new Uint32Array(RECENT * SIGNATURE_LANES),
      seenAt: new Float64Array(RECENT).fill(Number.NEGATIVE_INFINITY),
      next: 0,
      sweepToldAt: undefined,
    }
    if (known !== undefined) this.#byKey.delete(key)
    this.#byKey.set(key, conduct)
    for (const [oldest] of this.#byKey) {
      if (this.#byKey.size <= this.#keysMax) break
      this.#byKey.delete(oldest)
    }
    return conduct
  }
}

/** Recent prompts that are nearly this one, and not exactly. */
function countAlike(since: Instant, { signatures, seenAt }: Conduct, signature: Uint32Array): number {
  let count = 0
  for (let i = 0; i < RECENT; i++) {
    if ((seenAt[i] as number) < since) continue
    let shared = 0
    for (let lane = 0; lane < SIGNATURE_LANES; lane++)
      if (signatures[i * SIGNATURE_LANES + lane] === signature[lane]) shared++
    if (shared >= SHARED_LANES_MIN && shared < SIGNATURE_LANES) count++
  }
  return count
}
