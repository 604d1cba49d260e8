import { maskFreeText } from '../base/mask-free-text.ts'
import type { Entry, FaultSeen, ReplicaDenied, RolloutChanged, Settled } from '../domain/entry.ts'
import { NANO_PER_USD } from '../domain/ledger.ts'
import type { ScaleOrdered } from '../domain/scale-entry.ts'
import type { AbuseNoticed } from '../domain/screening-entry.ts'
import type { Subscriber } from './journal.ts'
import { jsonLine, type LogLine, prettyLine } from './log-line.ts'

/**
 * The log: one line for each settled request, one for each fault, one when the platform or a replica changes its state;
 * nothing per token, nothing per attempt.
 *
 * Fields are copied by name, never spread, so that a new field of an entry stays out of the log until its name is
 * written here. Reasons are free text and may quote a library's input, so they pass through `maskFreeText`. The time of
 * a line is the entry's, not the moment of writing.
 */
export interface LogOptions {
  readonly destination: LogDestination
  /** `json`: one object a line, for machines. `pretty`: one short line, for a person at a terminal. */
  readonly format?: 'json' | 'pretty'
  /** Lines below this level are not written: `error` leaves only faults. */
  readonly level?: 'info' | 'warn' | 'error' | 'silent'
  /** Number of this process among those of its host, in every line; absent where it is the only one. */
  readonly process?: number | undefined
}

/** Where lines go, each with its newline. `write` may throw when a line is lost: the journal counts it. */
export interface LogDestination {
  write(line: string): void
  /** Called at the end of a batch: gathered lines may be written. */
  flush?(): void
}

/** Replicas whose state is remembered, to tell a change from a repetition. Fleets are smaller. */
const REPLICAS_MAX = 10_000

const LEVEL_ORDER = { info: 0, warn: 1, error: 2, silent: 3 } as const

/** Every kind that has a line. */
const LOGGED = [
  'settled',
  'fault-seen',
  'platform-changed',
  'breaker-changed',
  'fleet-changed',
  'scale-ordered',
  'tenancy-changed',
  'config-changed',
  'rollout-changed',
  'rollout-memory',
  'rollout-followed',
  'leader-changed',
  'tenant-paused',
  'mode-changed',
  'replica-reported',
  'replica-denied',
  'archive-erased',
  'budget-marked',
  'abuse-noticed',
  'sharing-changed',
] as const satisfies ReadonlyArray<Entry['kind']>

type LoggedEntry = Extract<Entry, { readonly kind: (typeof LOGGED)[number] }>

export class LogLines implements Subscriber {
  readonly name = 'log'
  readonly kinds: ReadonlySet<Entry['kind']> = new Set(LOGGED)
  readonly #spell: (line: LogLine) => string
  readonly #levelMin: number
  readonly #destination: LogDestination
  readonly #wasReady = new Map<string, boolean>()

  constructor({ destination, format = 'json', level = 'info', process }: LogOptions) {
    this.#levelMin = LEVEL_ORDER[level]
    this.#destination = destination
    const spell = format === 'pretty' ? prettyLine : jsonLine
    this.#spell = process === undefined ? spell : (line) => spell({ ...line, fields: { process, ...line.fields } })
  }

  take(entry: Entry): void {
    const line = this.kinds.has(entry.kind) ? this.#lineOf(entry as LoggedEntry) : undefined
    if (line !== undefined && LEVEL_ORDER[line.level] >= this.#levelMin) this.#destination.write(this.#spell(line))
  }

  flush(): void {
    this.#destination.flush?.()
  }

  #lineOf(entry: LoggedEntry): LogLine | undefined {
    switch (entry.kind) {
      case 'settled':
        return settledLine(entry)
      case 'fault-seen':
        return faultLine(entry)
      case 'platform-changed':
        return { level: 'info', at: entry.at, message: entry.state, fields: { because: maskFreeText(entry.because) } }
      case 'breaker-changed': {
        const level = entry.state === 'open' ? 'warn' : 'info'
        const because = entry.because === undefined ? {} : { because: maskFreeText(entry.because) }
        return { level, at: entry.at, message: `breaker ${entry.state}`, fields: { what: entry.what, ...because } }
      }
      case 'fleet-changed':
        return this.#fleetLine(entry)
      case 'scale-ordered':
        return scaleLine(entry)
      case 'tenancy-changed': {
        const { at, edit, level, name, orgId, by, because } = entry
        const fields = { [level]: name, org: orgId, by, because: maskFreeText(because) }
        return { level: 'info', at, message: edit.replace('-', ' '), fields }
      }
      case 'config-changed': {
        const { at, by, because, summary, version } = entry
        return {
          level: 'info',
          at,
          message: 'configuration',
          fields: { by, because: maskFreeText(because), summary, version },
        }
      }
      case 'rollout-changed':
        return rolloutLine(entry)
      case 'rollout-memory':
        return memoryLine(entry)
      case 'rollout-followed': {
        const { at, model, from, to, percent } = entry
        return { level: 'info', at, message: 'rollout followed', fields: { model, stable: from, canary: to, percent } }
      }
      case 'leader-changed': {
        const { at, name, role, fence, because } = entry
        const level = role === 'nobody' ? 'warn' : 'info'
        return { level, at, message: LEADER_WORDS[role], fields: { duty: name, fence, because: maskFreeText(because) } }
      }
      case 'tenant-paused': {
        const { at, tenantId, isPaused, by, because } = entry
        const message = isPaused ? 'tenant paused' : 'tenant goes on'
        return { level: 'warn', at, message, fields: { tenant: tenantId, by, because: maskFreeText(because) } }
      }
      case 'mode-changed': {
        const { at, mode, by, because } = entry
        const level = mode === 'observe' ? 'warn' : 'info'
        return { level, at, message: `admission: ${mode}`, fields: { by, because: maskFreeText(because) } }
      }
      case 'archive-erased': {
        const { at, because, count } = entry
        return { level: 'info', at, message: 'stored answers erased', fields: { because, count } }
      }
      case 'abuse-noticed':
        return abuseLine(entry)
      case 'budget-marked':
        return budgetLine(entry)
      case 'sharing-changed': {
        const { at, state, gatewayCount, because } = entry
        const message = state === 'shared' ? 'limits shared' : 'limits alone: this gateway uses its safe share'
        const fields = { gateways: gatewayCount, because: maskFreeText(because) }
        return { level: state === 'shared' ? 'info' : 'warn', at, message, fields }
      }
      case 'replica-reported':
        return this.#replicaLine(entry)
      case 'replica-denied':
        return deniedLine(entry)
    }
  }

  #fleetLine({ at, what, name, poolId, by, because }: Extract<Entry, { kind: 'fleet-changed' }>): LogLine {
    if (what === 'replica-removed') this.#wasReady.delete(name)
    const fields = { name, pool: poolId, by, because: maskFreeText(because) }
    return { level: 'info', at, message: what.replace('-', ' '), fields }
  }

  /** Replicas report every tick; only a change is logged. */
  #replicaLine({ at, replicaId, isReady, because }: Extract<Entry, { kind: 'replica-reported' }>): LogLine | undefined {
    if (this.#wasReady.get(replicaId) === isReady) return undefined
    if (this.#wasReady.size >= REPLICAS_MAX) this.#wasReady.clear()
    this.#wasReady.set(replicaId, isReady)
    const message = isReady ? 'replica ready' : 'replica not ready'
    const fields = { replica: replicaId, because: maskFreeText(because) }
    return { level: isReady ? 'info' : 'warn', at, message, fields }
  }
}

const LEADER_WORDS = { leads: 'leads', follows: 'another gateway leads', nobody: 'no leader is known' } as const

function deniedLine({ at, replicaId, poolId, isDenied, because }: ReplicaDenied): LogLine {
  const message = isDenied ? 'replica denied: mend its key, address or quota' : 'replica no longer denied'
  const fields = { replica: replicaId, pool: poolId, because: maskFreeText(because) }
  return { level: isDenied ? 'error' : 'info', at, message, fields }
}

function abuseLine({ at, tenantId, keyId, abuse, response, pauseUs, because }: AbuseNoticed): LogLine {
  const fields = { tenant: tenantId, key: keyId, abuse, response, pauseMs: toMs(pauseUs, 0), because }
  return { level: 'warn', at, message: 'abuse noticed', fields }
}

function memoryLine({ at, model, outcome, because }: Extract<Entry, { kind: 'rollout-memory' }>): LogLine {
  const level = outcome === 'kept' ? 'info' : outcome === 'failed' ? 'warn' : 'error'
  return { level, at, message: `rollout memory ${outcome}`, fields: { model, because: maskFreeText(because) } }
}

function settledLine(entry: Settled): LogLine {
  const { arrivedAt, grantedAt, firstTokenAt, usage } = entry
  const fields = {
    ticket: entry.ticketId,
    tenant: entry.tenantId,
    model: entry.model,
    servedModel: entry.servedModel === entry.model ? undefined : entry.servedModel,
    band: entry.band,
    rung: entry.rung,
    outcome: entry.outcome,
    code: entry.refusal?.code,
    because: entry.outcome === 'completed' ? undefined : maskFreeText(entry.because),
    release: entry.releaseId,
    pool: entry.poolId,
    replica: entry.replicaId,
    attempts: entry.attempts,
    promptTokens: usage.promptTokens,
    cachedTokens: usage.cachedTokens,
    outputTokens: usage.outputTokens,
    totalMs: toMs(entry.at, arrivedAt),
    waitMs: toMs(grantedAt, entry.admittedAt),
    firstTokenMs: toMs(firstTokenAt, arrivedAt),
    slowestTokenMs: toMs(entry.gaps?.maxUs, 0),
  }
  return { level: 'info', at: entry.at, message: 'request settled', fields }
}

function rolloutLine(entry: RolloutChanged): LogLine {
  const { at, model, change, from, to, percent, by, because } = entry
  const level = change === 'rolled-back' ? 'warn' : 'info'
  const fields = { model, stable: from, canary: to, percent, by, because: maskFreeText(because) }
  return { level, at, message: `rollout ${change}`, fields }
}

function faultLine({ at, where, because, ticketId }: FaultSeen): LogLine {
  return { level: 'error', at, message: 'fault', fields: { where, because: maskFreeText(because), ticket: ticketId } }
}

/** Tenths of a millisecond are precise enough for a log. */
function toMs(to: number | undefined, from: number | undefined): number | undefined {
  return to === undefined || from === undefined ? undefined : Math.round((to - from) / 100) / 10
}

/** End users are not named in the log. */
function budgetLine({
  at,
  scope,
  scopeId,
  period,
  isHard,
  mark,
  ...entry
}: Extract<Entry, { kind: 'budget-marked' }>): LogLine {
  const { usedNano, nanoMax, usedTokens, tokensMax } = entry
  const fields = {
    scope,
    name: scope === 'user' ? scopeId.split('/')[0] : scopeId,
    period,
    kind: isHard ? 'hard' : 'soft',
    mark,
    ...(nanoMax !== undefined && { usedUsd: usedNano / NANO_PER_USD, limitUsd: nanoMax / NANO_PER_USD }),
    ...(tokensMax !== undefined && { usedTokens, limitTokens: tokensMax }),
  }
  return { level: 'warn', at, message: 'budget mark', fields }
}

function scaleLine({ at, poolId, from, to, leavingCount, outcome, because }: ScaleOrdered): LogLine {
  const fields = { pool: poolId, from, to, drained: leavingCount, because: maskFreeText(because) }
  return { level: outcome === 'failed' ? 'warn' : 'info', at, message: SCALE_WORDS[outcome], fields }
}

const SCALE_WORDS: Readonly<Record<ScaleOrdered['outcome'], string>> = {
  done: 'replicas ordered',
  failed: 'replicas could not be ordered',
  'dry-run': 'replicas would be ordered',
}
