/**
 * Which replica has work and makes no progress?
 *
 * An engine whose core hangs still accepts connections and answers health checks; only its answers stop. Progress of a
 * replica is any part of any of its answers, any change of its own count of tokens, and its answer to a question of ours
 * (one token). Work is every attempt there, except those whose client is too slow to take what the engine sends.
 *
 *   idle ──work──▶ watched ──silence: the bound──▶ suspected (asked) ──silence: `answerUsMin`──▶ stalled
 *                     ▲                                │                                            │
 *                     └───────── any progress ─────────┴────────────────────────────────────────────┘
 *
 * The bound is the longest of what a healthy engine may need without showing anything:
 *   `silenceUsMin`, or `steps` × the expected time of a step
 *   `margin` × the expected time to read the prompts that wait to be read, and, where neither a stream nor a counter shows
 *   how far the engine is, to write the longest answer that comes in one piece
 * Expectations of an engine that is new may be wrong. So a replica is judged from its first complete answer on, and what it
 * took for the last prompt alone, and for a token of the last answer in one piece, counts where it is longer. An engine that
 * answers our questions while its answers are silent (a hosted model that thinks) is asked half as often each time.
 *
 * Deliberately not: what follows for requests and for health (`lifecycle/fleet/liveness.ts`); whether the process answers at
 * all (probes). A look that comes late means that this process was held up: then silence says nothing of the engine.
 *
 * Laws: L18 (a replica that makes no progress gets no work after 3 s).
 * Example: steps of 12 ms, prompts of 1,000 tokens (40 ms). The last token comes at 0 s: the replica is asked at 1.25 s and
 * stalled at 1.95 s. Beside a prompt whose reading takes 1.5 s it is asked at 3 s.
 */
export const PROGRESS_DEFAULTS = {
  /** Steps that may be missed: a preemption, a garbage collection or the compilation of a kernel takes less. */
  steps: 20,
  /** Microseconds: a little more than the second between two looks at the engine's counter. */
  silenceUsMin: 1_250_000,
  /** Microseconds for the answer to our question: with the two above, a counter that stops is found within 3 s. */
  answerUsMin: 700_000,
  /** Factor for reading and for whole answers: most predictions of a learned model are within a factor of 1.25. */
  margin: 2,
  /** Prompts that an engine may read together before the first of them is done, as one step's budget of tokens has room. */
  promptsTogether: 4,
  /** Doublings of the bound while our questions are answered: half a minute at least between two of them. */
  doublingsMax: 5,
  /** Microseconds by which a wake-up may be late before it says that this process was held up. */
  lateUsMax: 250_000,
} as const

export interface WorkTerms {
  readonly promptTokens: number
  /** Expected time to read the prompt alone, without a cache. */
  readonly readUs: number
  /** Tokens of an answer that comes in one piece, at its longest; 0 for what shows its first token. */
  readonly pieceTokens: number
}

/** One attempt at a replica. */
export interface WatchedWork {
  readonly replicaId: string
}

interface OwnWork extends WatchedWork, WorkTerms {
  readonly beganAt: number
  readonly isAlone: boolean
  isRead: boolean
  isBlocked: boolean
}

interface State {
  readonly works: Set<OwnWork>
  kind: 'watched' | 'suspected' | 'stalled'
  /** When the present kind is looked at again; Infinity without work. */
  dueAt: number
  /** The last progress, or the instant from which there is work. */
  movedAt: number
  doublings: number
  isKnown: boolean
  counter: number | undefined
  /** Of the last prompt that was read alone, and of the last answer in one piece: microseconds for each token. */
  readUsPerToken: number
  pieceUsPerToken: number
}

export class Progress {
  readonly #stepUs: (replicaId: string) => number
  readonly #states = new Map<string, State>()

  /** `stepUs`: the expected time of a step under the replica's present load. */
  constructor(stepUs: (replicaId: string) => number) {
    this.#stepUs = stepUs
  }

  begin(now: number, replicaId: string, terms: WorkTerms): WatchedWork {
    const state = this.#of(replicaId)
    const isAlone = state.works.size === 0
    const work: OwnWork = { replicaId, ...terms, beganAt: now, isAlone, isRead: false, isBlocked: false }
    if (!hasWork(state)) startWatch(now, state)
    state.works.add(work)
    return work
  }

  /** A part of its answer has come, of so many tokens. True when the replica was stalled and is not any more. */
  moved(now: number, work: WatchedWork, tokens: number): boolean {
    const own = work as OwnWork
    const state = this.#states.get(own.replicaId)
    if (state === undefined) return false
    if (!own.isRead) measure(now, state, own, tokens)
    own.isRead = true
    state.doublings = 0
    return progress(now, state)
  }

  /** Its client is too slow to take what the engine sends, or takes it again. */
  blocked(now: number, work: WatchedWork, isBlocked: boolean): void {
    const own = work as OwnWork
    const state = this.#states.get(own.replicaId)
    if (state === undefined || own.isBlocked === isBlocked) return
    const hadWork = hasWork(state)
    own.isBlocked = isBlocked
    if (!hadWork && hasWork(state)) startWatch(now, state)
  }

  /** `isWhole`: with the whole answer. A refusal is no progress: front ends refuse by themselves. */
  end(work: WatchedWork, isWhole: boolean): void {
    const state = this.#states.get(work.replicaId)
    if (state?.works.delete(work as OwnWork) === true && isWhole) state.isKnown = true
  }

  /** What the engine has counted of its tokens since it began. True when the replica was stalled and is not any more. */
  counted(now: number, replicaId: string, count: number): boolean {
    const state = this.#of(replicaId)
    const hasMoved = state.counter !== undefined && state.counter !== count
    state.counter = count
    if (!hasMoved) return false
    state.doublings = 0
    return progress(now, state)
  }

  /** Our question was answered. True when the replica was stalled and is not any more. */
  answered(now: number, replicaId: string): boolean {
    const state = this.#states.get(replicaId)
    if (state === undefined) return false
    if (state.kind === 'suspected') state.doublings = Math.min(PROGRESS_DEFAULTS.doublingsMax, state.doublings + 1)
    return progress(now, state)
  }

  isStalled(replicaId: string): boolean {
    return this.#states.get(replicaId)?.kind === 'stalled'
  }

  /** The engine says itself that it does nothing: asleep. */
  stall(replicaId: string): void {
    this.#of(replicaId).kind = 'stalled'
  }

  /** It was away: the process that is there now must show anew how fast it is. */
  restarted(now: number, replicaId: string): void {
    const state = this.#states.get(replicaId)
    if (state === undefined) return
    Object.assign(state, NEW)
    startWatch(now, state)
  }

  remove(replicaId: string): void {
    this.#states.delete(replicaId)
  }

  /** When to look at the replica; undefined while it has no work. */
  lookAt(replicaId: string): number | undefined {
    const state = this.#states.get(replicaId)
    return state !== undefined && hasWork(state) ? state.dueAt : undefined
  }

  /** `ask`: put a question to it. `stalled`: it makes no progress, and what runs there should end. */
  look(now: number, replicaId: string): 'ask' | 'stalled' | undefined {
    const state = this.#states.get(replicaId)
    if (state === undefined || !hasWork(state) || state.dueAt > now) return undefined
    if (now - state.dueAt > PROGRESS_DEFAULTS.lateUsMax) {
      startWatch(now, state)
      return undefined
    }
    if (state.kind === 'suspected') {
      state.kind = 'stalled'
      startWatch(now, state)
      return 'stalled'
    }
    const boundUs = this.#boundUs(replicaId, state)
    state.dueAt = state.movedAt + boundUs
    if (state.dueAt > now) return undefined
    if (!state.isKnown) {
      state.dueAt = now + boundUs
      return undefined
    }
    state.dueAt = now + answerUs(state)
    // Work that came back to life while the replica was stalled: its client had been too slow until now.
    if (state.kind === 'stalled') return 'stalled'
    state.kind = 'suspected'
    return 'ask'
  }

  #boundUs(replicaId: string, state: State): number {
    const { silenceUsMin, steps, margin, promptsTogether } = PROGRESS_DEFAULTS
    const stepUs = Math.max(this.#stepUs(replicaId), state.pieceUsPerToken)
    let sumUs = 0
    let longestUs = 0
    let pieceUs = 0
    let isTold = state.counter !== undefined
    for (const work of state.works) {
      if (work.isBlocked) continue
      pieceUs = Math.max(pieceUs, work.pieceTokens * stepUs)
      if (work.isRead) isTold = true
      else {
        const readUs = Math.max(work.readUs, state.readUsPerToken * work.promptTokens)
        sumUs += readUs
        longestUs = Math.max(longestUs, readUs)
      }
    }
    const readUs = margin * Math.min(sumUs, promptsTogether * longestUs)
    const boundUs = Math.max(silenceUsMin, steps * stepUs, readUs + (isTold ? 0 : margin * pieceUs))
    return Math.ceil(boundUs * 2 ** state.doublings)
  }

  #of(replicaId: string): State {
    let state = this.#states.get(replicaId)
    if (state === undefined) {
      state = { works: new Set(), ...NEW, movedAt: 0, dueAt: Number.POSITIVE_INFINITY }
      this.#states.set(replicaId, state)
    }
    return state
  }
}

const NEW = {
  kind: 'watched',
  doublings: 0,
  isKnown: false,
  counter: undefined,
  readUsPerToken: 0,
  pieceUsPerToken: 0,
} as const

/** True when it was stalled. */
function progress(now: number, state: State): boolean {
  const wasStalled = state.kind === 'stalled'
  state.movedAt = now
  if (state.kind === 'watched') return false
  state.kind = 'watched'
  state.dueAt = now + PROGRESS_DEFAULTS.silenceUsMin
  return wasStalled
}

/** The time for the answer to our question: one token needs what the shortest prompt needs. */
function answerUs({ works, readUsPerToken }: State): number {
  let leastUs = Number.POSITIVE_INFINITY
  for (const { readUs, promptTokens } of works)
    leastUs = Math.min(leastUs, Math.max(readUs, readUsPerToken * promptTokens))
  return Math.ceil(Math.max(PROGRESS_DEFAULTS.answerUsMin, PROGRESS_DEFAULTS.margin * leastUs))
}

/** The first work after none, or the first whose client reads again. */
function startWatch(now: number, state: State): void {
  if (state.kind === 'suspected') state.kind = 'watched'
  state.doublings = 0
  state.movedAt = now
  state.dueAt = now + PROGRESS_DEFAULTS.silenceUsMin
}

/** Of shorter pieces the time is mostly the prompt's. */
const PIECE_TOKENS_MIN = 8

function measure(now: number, state: State, { beganAt, isAlone, ...terms }: OwnWork, tokens: number): void {
  const { promptTokens, pieceTokens, readUs } = terms
  const tookUs = now - beganAt
  if (pieceTokens === 0) {
    if (isAlone) state.readUsPerToken = tookUs / Math.max(1, promptTokens)
  } else if (tokens >= PIECE_TOKENS_MIN) {
    state.pieceUsPerToken = Math.max(0, tookUs - readUs) / tokens
  }
}

function hasWork({ works }: State): boolean {
  for (const { isBlocked } of works) if (!isBlocked) return true
  return false
}
