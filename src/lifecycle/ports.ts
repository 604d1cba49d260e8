import type { Cancellation } from '../base/cancellation.ts'
import type { Clock, Instant } from '../base/clock.ts'
import type { Delta, Usage } from '../domain/delta.ts'
import type { EngineTime } from '../domain/engine-time.ts'
import type { Entry } from '../domain/entry.ts'
import type { Lease, Replica } from '../domain/fleet.ts'
import type { Fence } from '../domain/leader.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { Outlook } from '../domain/outlook.ts'
import type { Plan } from '../domain/plan.ts'
import type { RoomAllowance } from '../domain/pool-share.ts'
import type { Request } from '../domain/request.ts'
import type { SecondStore } from '../domain/second-store.ts'
import type { AnswerCacheTerms } from '../domain/tenant.ts'
import type { ModelRolloutMemory } from '../policy/rollout/model-rollout.ts'
import type { TwinMemory } from '../policy/twin/twin-memory.ts'
import type { AuditTrail } from './audit-ports.ts'
import type { Actuators, CellDrains } from './autoscale-ports.ts'
import type { Books } from './ledger-ports.ts'
import type { Retrieved, Retriever } from './retrieval-ports.ts'
import type { Screener } from './screening-ports.ts'
import type { SliceFetcher } from './sharing-ports.ts'

/**
 * The world, as the request's story sees it. Whatever is plugged in here is the world: live sockets and real time in
 * the server, simulated engines and virtual time in the simulator. The story is the same.
 */
export interface World {
  readonly clock: Clock
  readonly journal: Journal
  readonly backends: Backends
  readonly capacity: Capacity
  readonly retriever: Retriever
  readonly answers: AnswerCache
  readonly rolloutKeeper: RolloutKeeper
  readonly twinKeeper: TwinKeeper
  /** Absent where budgets are this process' own. */
  readonly slices?: SliceFetcher
  /** Absent where nothing is written down: then budgets count from the start of the process. */
  readonly balances?: SliceFetcher
  readonly books: Books
  readonly leadership: Leadership
  /** Absent where nothing is screened. */
  readonly screener?: Screener
  /** Absent where nothing is audited. */
  readonly audit?: AuditTrail
  /** Absent where no other gateway uses the same replicas. */
  readonly seconds?: SharedSecondStore
  /** Who changes numbers of replicas; absent where nobody does. */
  readonly actuators?: Actuators
  /** Absent where a drain is this gateway's own affair. */
  readonly cellDrains?: CellDrains
}

/** What happened? Never blocks, never throws, and whoever listens can change no outcome (law L11). */
export interface Journal {
  record(entry: Entry): void
}

/**
 * Has this tenant been answered this before, asked in other words?
 *
 * Obligations: it never throws, takes no longer than a bound of its own, and gives an answer only to the tenant, release
 * and prompt version that it was made for.
 */
export interface AnswerCache {
  find(ask: AnswerAsk): Promise<FoundAnswer>
  /** Returns at once; what cannot be kept is not. */
  keep(ask: AnswerAsk, answer: KeptAnswer): void
  /** How alike two answers are, 0 … 1; undefined when that cannot be told. */
  likeness(known: KeptAnswer, fresh: KeptAnswer): Promise<number | undefined>
}

export interface AnswerAsk {
  readonly tenantId: string
  readonly releaseId: string
  readonly promptVersion: string
  /** Which passages could have been found; empty without retrieval. */
  readonly corpusVersion: string
  readonly question: string
  readonly terms: AnswerCacheTerms
  readonly cancellation: Cancellation
}

export interface KeptAnswer {
  /** Absent in simulation. */
  readonly content: string | undefined
  /** What it took to make. */
  readonly usage: Usage
}

export type FoundAnswer =
  | { readonly kind: 'hit'; readonly answer: KeptAnswer; readonly similarity: number }
  | { readonly kind: 'miss' | 'skipped'; readonly because: string; readonly similarity?: number }

/**
 * Where does it last how far a rollout has got? A release that was rolled back must stay so after a restart.
 *
 * Obligations: `keep` returns at once and never throws. The newest memory of every model is kept in the end, however
 * long the store is away, and what could not be kept when the process ends is counted; of several memories of one model
 * only the newest must be kept.
 */
export interface RolloutKeeper {
  keep(model: string, memory: ModelRolloutMemory, reason: KeepReason): void
}

/** Who changed the rollout, and why; with a leader's fence where the platform decided it. */
export interface KeepReason {
  readonly by: string
  readonly because: string
  readonly fence?: Fence | undefined
}

/**
 * May this gateway decide for all gateways of its cell? What must happen once (a rollout's steps, holdout questions) is
 * done by the one that leads.
 *
 * Obligations: `role` is asked at every step, returns at once and never throws. A gateway that leads by a fence hands
 * the fence to whatever it writes; the store refuses what comes after the term.
 */
export interface Leadership {
  role(): LeaderRole
}

export type LeaderRole =
  /** Without a fence where no other gateway could lead. */
  | { readonly kind: 'leads'; readonly fence: Fence | undefined }
  | { readonly kind: 'follows'; readonly holder: string }
  /** Nobody is known to lead: the store is away, or cannot say. */
  | { readonly kind: 'nobody'; readonly because: string }

/**
 * Where does it last what was learned of engines? A restart that forgets it costs a minute of caution, no more.
 *
 * Obligations: `keep` and `recall` return at once and never throw, however long the store is away. Of several memories of
 * one replica only the newest must be kept; memories of a bounded number of replicas are.
 */
export interface TwinKeeper {
  keep(kept: readonly KeptTwin[]): void
  /** What is known of this replica from before; undefined where nothing is, or where the store has not answered yet. */
  recall(replicaId: string): TwinMemory | undefined
}

export interface KeptTwin {
  readonly poolId: string
  readonly replicaId: string
  readonly memory: TwinMemory
}

/** Which adapter reaches this replica? */
export interface Backends {
  of(replica: Replica): Backend
  /** The replica is gone, and nothing runs there any more: what was kept for it may be closed. */
  forget?(replica: Replica): void
}

/**
 * How do we run a plan on one replica? One adapter per kind of engine.
 *
 * Obligations: every expected ending is a value, not an exception. Nothing is written to the sink after the promise
 * has settled or the call was cancelled. After a cancellation the engine's sequence is freed at once, without waiting
 * for the network.
 */
export interface Backend {
  generate(call: Call): Promise<Ending>
  /** Is the replica ready, and how busy does it say it is? It settles within a bound of its own. */
  probe(replica: Replica): Promise<ReplicaReport>
  /**
   * Does the engine do any work? A question that takes it one token. False when no answer comes within a bound of its own,
   * which is 2 s at most. Absent where no such question can be put, or each would cost money.
   */
  ask?(replica: Replica, kind: QuestionKind): Promise<boolean>
  /**
   * What a running call has taken of its engine's time so far, of an engine that knows; undefined when the call is not
   * running. An engine that has this says the same in the ending.
   */
  engineTimeOf?(lease: Lease): EngineTime | undefined
}

export type QuestionKind = 'chat' | 'completion' | 'embedding'

export interface Call {
  readonly lease: Lease
  readonly request: Request
  readonly plan: Plan
  readonly sink: DeltaSink
  readonly cancellation: Cancellation
  /** Which attempt of its ticket it is; absent: the first. */
  readonly attempt?: number
  /** An engine that has said nothing by then is given up, as lost: there is time for another one. */
  readonly firstTokenBy?: Instant
}

export interface DeltaSink {
  /**
   * Takes one delta. A returned promise means "the reader is slow: write nothing more until it resolves"; the
   * backend then stops reading from its engine, which is how backpressure travels from end to end.
   */
  write(delta: Delta): Promise<void> | undefined
}

/**
 * How one call ended. `refused`: the replica took nothing. `lost`: it broke off, perhaps in the middle; `isUnreachable`:
 * nothing listens there; `isStalled`: the platform gave it up, because its engine makes no progress. A backend that
 * reports seldom says with `cancelled` how many tokens the client had got since its last delta. A backend that had to
 * guess the tokens of its deltas says with `finished` how many they were in all: some of the usage is not streamed.
 */
export type Ending = EndingKind & {
  /** What the call took of its engine's time, of an engine that knows. */
  readonly engineTime?: EngineTime
}

type EndingKind =
  | { readonly kind: 'finished'; readonly usage: Usage | undefined; readonly streamedTokens?: number }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | LostEnding
  | { readonly kind: 'cancelled'; readonly unreportedTokens?: number }

interface LostEnding {
  readonly kind: 'lost'
  readonly because: string
  readonly isUnreachable?: boolean
  readonly isStalled?: boolean
}

/** What a replica says of itself. A gauge that the engine does not have is absent, which is unknown and never zero. */
export interface ReplicaReport {
  readonly isReady: boolean
  readonly because: string
  readonly runningCount?: number
  readonly waitingCount?: number
  readonly kvUsageRatio?: number
  /**
   * Work that the engine has done since its start, as the time that a full engine takes for it: work ÷ elapsed time is
   * the share of what it could do. Not its busy time.
   */
  readonly fullWorkUs?: number
  /** The engine is up and does nothing until somebody wakes it. */
  readonly isAsleep?: boolean
  /** Tokens that the engine has worked on since it began, counted with every step: it stands still when the engine does. */
  readonly workCount?: number
  /** Sequences that the engine preempted since it began. */
  readonly preemptionCount?: number
  /** Tokens that the engine's KV memory holds. */
  readonly kvTokensMax?: number
  /** Of another region’s gateway: what it says of the model, and how long it took to say so. */
  readonly outlook?: Outlook
  readonly roundTripUs?: number
}

/**
 * How much room may this process use at a replica that has just been added? One process alone may use all of it. Where
 * several gateways share the room it is nothing until the first exchange (`sharing/room-exchange.ts`), which tells the
 * turnstile. Leases themselves are the dispatcher's business.
 */
export interface Capacity {
  allowance(replica: Replica): RoomAllowance
}

/**
 * Where the answer goes: an SSE stream, a buffer, a simulated client. `start` is called once, before
 * the first delta; exactly one of `finish` and `fail` ends it. A sink that has lost its client cancels the ticket.
 */
export interface Sink extends DeltaSink {
  start(head: AnswerHead): void
  /** `flagged`: screens that flagged something after the head had gone out. */
  finish(usage: Usage, flagged?: readonly string[]): void
  fail(refusal: Refusal): void
}

/** What is known when an answer begins. */
export interface AnswerHead {
  readonly model: string
  readonly releaseId?: string
  readonly rung: string
  /** What retrieval brought, when it was asked for. */
  readonly retrieved?: Retrieved
  /** What the screens said, for tenants that have some. */
  readonly screened?: ScreenedHead
  /** It was known already, from a question as near as this. */
  readonly cached?: { readonly similarity: number; readonly saved: Usage }
  /** Names of what the engine said that a screened answer does not have. */
  readonly dropped?: readonly string[]
  /** Kinds of parts of the answer that no screen could look into. */
  readonly unscreened?: readonly string[]
}

/** What the client is told of screening. */
export interface ScreenedHead {
  /** Screens that found something of which the client is told. */
  readonly flagged: readonly string[]
  /** A screen could not say, or parts of the request could not be looked into. */
  readonly isPartial: boolean
}

/** Where gateways of one cell tell their seconds, and this gateway's name there. */
export interface SharedSecondStore {
  readonly store: SecondStore
  readonly reporterId: string
}
