import { redactedUrl } from '../config/redact.ts'
import { replicaIdOf } from '../config/to-domain.ts'
import { MODE_ENTRY } from '../config/with-registry.ts'
import type { Pool, Replica } from '../domain/fleet.ts'
import type { HistoryAsk, RegistryChange, RegistryEdit, RegistryKind } from '../domain/registry.ts'
import type {
  AdminAdmission,
  AdminAnswer,
  AdminCommand,
  AdminLearned,
  AdminModel,
  AdminPool,
  AdminReason,
  AdminRefusal,
  AdminRelease,
  AdminReloadAnswer,
  AdminReplica,
  AdminRestartAnswer,
  AdminRollout,
  FleetAdmin,
} from '../gateway/fleet-admin.ts'
import { changeMode, changePause } from '../lifecycle/change-terms.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { Drains } from './drains.ts'
import { learnedView } from './learned-view.ts'
import type { LiveRegistry } from './live-registry.ts'
import type { Pauses } from './pauses.ts'
import type { RolloutCommands } from './rollout-commands.ts'
import type { Wanted, WantedOwner } from './wanted.ts'

/** The admin API's view of the running platform, and its commands. */
export interface AdminParts {
  readonly platform: Platform
  readonly owner: WantedOwner
  readonly registry: LiveRegistry
  readonly rollouts: RolloutCommands
  readonly drains: Drains
  readonly pauses: Pauses
  readonly isTenant: (id: string) => boolean
  readonly reload: (reason: AdminReason) => Promise<AdminReloadAnswer>
}

export class PlatformAdmin implements FleetAdmin {
  readonly #parts: AdminParts
  readonly #platform: Platform
  readonly #registry: LiveRegistry

  constructor(parts: AdminParts) {
    this.#parts = parts
    this.#platform = parts.platform
    this.#registry = parts.registry
  }

  rollouts(): readonly AdminRollout[] {
    return this.#parts.rollouts.list()
  }

  rollout(model: string, command: AdminCommand, reason: AdminReason): Promise<AdminAnswer> {
    return this.#parts.rollouts.command(model, command, reason)
  }

  reload(reason: AdminReason): Promise<AdminReloadAnswer> {
    return this.#parts.reload(reason)
  }

  models(): readonly AdminModel[] {
    const { policies } = this.#platform
    const pools = this.pools()
    return Array.from(policies.models.values(), (model) => ({
      name: model.name,
      source: this.#sourceOf('model', model.name),
      aliases: model.aliases,
      contextTokensMax: model.contextTokensMax,
      fallback: model.fallback,
      releases: model.releases.flatMap((id) => this.#release(id) ?? []),
      pools: pools.filter((pool) => pool.model === model.name),
    }))
  }

  pools(): readonly AdminPool[] {
    return this.#platform.pools.map((pool) => this.#pool(pool))
  }

  learned(poolId: string): AdminLearned | undefined {
    const known = this.#platform.policies.poolsById.get(poolId)
    return known && learnedView(known)
  }

  edit(edits: readonly RegistryEdit[], reason: AdminReason): Promise<AdminAnswer> {
    return this.#registry.edit(edits, reason)
  }

  remove(kind: RegistryKind, name: string, reason: AdminReason): Promise<AdminAnswer> {
    return this.#registry.remove(kind, name, reason)
  }

  /** Adds an entry of its own for a pool of the file; for a pool of the registry, adds to the list of the pool's entry. */
  async addReplica(poolId: string, url: string, reason: AdminReason): Promise<AdminAnswer> {
    if (this.#wanted.pools.get(poolId)?.backend.kind === 'simulated') {
      const because = `the pool ${poolId} has simulated engines, which have no addresses. Change how many it has where it is written: in the configuration file, or in the registry`
      return refused({ code: 'simulated-engines', because, param: 'pool' })
    }
    if (this.#wanted.filePoolIds.has(poolId)) {
      const edit: RegistryEdit = { kind: 'replica', name: replicaIdOf(poolId, url), body: { pool: poolId, url } }
      return this.#registry.edit([edit], reason)
    }
    return this.#editReplicas(poolId, reason, (urls) => [...urls.filter((known) => known !== url), url])
  }

  async removeReplica(replicaId: string, reason: AdminReason): Promise<AdminAnswer> {
    const replica = this.#platform.policies.fleet.replica(replicaId)
    const { filePoolIds, pools } = this.#wanted
    if (replica === undefined) return noSuchReplica(replicaId)
    const setup = pools.get(replica.poolId)
    const url = setup?.urls.get(replicaId)
    if (url === undefined && setup?.backend.kind !== 'simulated') {
      const because = `${replicaId} was found by discovery, which would find it again. Drain it, or take it out there`
      return refused({ code: 'discovered', because, param: 'replica' })
    }
    if (filePoolIds.has(replica.poolId)) return this.#registry.remove('replica', replicaId, reason)
    const without = (urls: readonly string[]): readonly string[] => urls.filter((known) => known !== url)
    return this.#editReplicas(replica.poolId, reason, without, this.#parts.drains.editsFor(replicaId, false))
  }

  /** In force here at once, also while the store is away; then written, which brings it to the other gateways. */
  async drain(replicaId: string, isDrained: boolean, reason: AdminReason): Promise<AdminAnswer> {
    const kind = isDrained ? 'drain-replica' : 'undrain-replica'
    const answer = this.#platform.changeFleet({ kind, replicaId }, reason)
    if (answer.kind === 'refused') return noSuchReplica(replicaId)
    return this.#kept(() => this.#parts.drains.editsFor(replicaId, isDrained), reason)
  }

  admission(): AdminAdmission {
    const { policies } = this.#platform
    const paused = Array.from(policies.paused, ([tenant, because]) => ({ tenant, because }))
    return { mode: policies.mode, modeInFile: this.#wanted.file.admission.mode, paused }
  }

  /** In force here at once, as a drain. */
  async pause(tenantId: string, isPaused: boolean, reason: AdminReason): Promise<AdminAnswer> {
    const isKnown = this.#platform.policies.paused.has(tenantId) || this.#parts.isTenant(tenantId)
    if (!isKnown) {
      const because = `there is no tenant ${tenantId}`
      return refused({ code: 'no-such-record', because, param: 'tenant' })
    }
    changePause(this.#platform, tenantId, isPaused, reason)
    return this.#kept(() => this.#parts.pauses.editsFor(tenantId, isPaused, reason.because), reason)
  }

  /** In force here at once, as a drain. The file's own mode needs no entry. */
  async changeMode(mode: AdminAdmission['mode'], reason: AdminReason): Promise<AdminAnswer> {
    changeMode(this.#platform, mode, reason)
    return this.#kept(() => {
      const { file, entries } = this.#wanted
      const known = entries.find(({ kind }) => kind === 'mode')
      const body = mode === file.admission.mode ? undefined : { mode }
      if (known?.body['mode'] === body?.mode) return []
      return [{ kind: 'mode', name: MODE_ENTRY, body }]
    }, reason)
  }

  /** Writes what is in force already. */
  async #kept(editsOf: () => readonly RegistryEdit[], reason: AdminReason): Promise<AdminAnswer> {
    const kept = await this.#registry.change(editsOf, reason)
    if (kept.kind === 'changed' || kept.refusal.code !== 'registry-unavailable') return kept
    const because = `it is in force at this gateway until it restarts, but could not be written: ${kept.refusal.because}`
    return refused({ ...kept.refusal, because })
  }

  /** A server that is the only process of its host has nobody who would go on meanwhile. */
  restart(): Promise<AdminRestartAnswer> {
    const because = 'this server has one process (server.processes), which cannot replace itself'
    return Promise.resolve({ kind: 'refused', refusal: { code: 'nothing-to-restart', because, param: null } })
  }

  history(ask: HistoryAsk): Promise<readonly RegistryChange[] | AdminRefusal> {
    const poolIds = this.pools().flatMap(({ id, model }) => (model === ask.name ? [id] : []))
    return this.#registry.history({ ...ask, poolIds })
  }

  get #wanted(): Wanted {
    return this.#parts.owner.current
  }

  #editReplicas(
    poolId: string,
    reason: AdminReason,
    edit: (urls: readonly string[]) => readonly string[],
    along: readonly RegistryEdit[] = [],
  ): Promise<AdminAnswer> {
    const entry = this.#wanted.entries.find(({ kind, name }) => kind === 'pool' && name === poolId)
    // `editEntries` refuses the removal of an unknown pool, with the nearest name.
    if (entry === undefined) return this.#registry.edit([{ kind: 'pool', name: poolId, body: undefined }], reason)
    const { replicas, ...body } = entry.body
    const backend = body['backend'] as { readonly url?: string } | undefined
    const { url, ...rest } = backend ?? {}
    const known = Array.isArray(replicas) ? (replicas as string[]) : url === undefined ? [] : [url]
    const next = { ...body, backend: rest, replicas: edit(known) }
    return this.#registry.edit([{ kind: 'pool', name: poolId, body: next }, ...along], reason)
  }

  #release(id: string): AdminRelease | undefined {
    const release = this.#platform.policies.releases.get(id)
    if (release === undefined) return undefined
    const { version, artifact, labels, contextTokensMax, fallback, price } = release
    const source = this.#sourceOf('release', id)
    return { id, version, source, artifact, labels, contextTokensMax, fallback, price }
  }

  #pool(pool: Pool): AdminPool {
    const { dispatcher } = this.#platform.policies
    const facts = dispatcher.poolFacts(pool.id)
    return {
      id: pool.id,
      source: this.#wanted.filePoolIds.has(pool.id) ? 'file' : 'registry',
      model: pool.model,
      release: pool.releaseId,
      region: pool.region,
      backend: this.#wanted.pools.get(pool.id)?.backend.kind ?? 'closing',
      isClosing: this.#platform.fleetChanges.isLeaving(pool.id),
      waiting: facts?.queuedCount ?? 0,
      running: facts?.heldCount ?? 0,
      replicas: pool.replicas.map((replica) => this.#replica(replica)),
    }
  }

  #replica(replica: Replica): AdminReplica {
    const { id, poolId } = replica
    const { policies, fleetChanges } = this.#platform
    const kvTokensMax = policies.poolsById.get(poolId)?.kvTokensMaxOf(replica) ?? Number.POSITIVE_INFINITY
    const kvRatio = policies.dispatcher.kvTokensAt(id) / kvTokensMax
    const url = this.#wanted.pools.get(poolId)?.urls.get(id)
    const deniedBecause = policies.health.deniedBecause(id)
    return {
      id,
      url: url === undefined ? undefined : redactedUrl(url),
      health: policies.health.kindOf(id) ?? 'away',
      ...(deniedBecause !== undefined && { deniedBecause }),
      running: policies.dispatcher.heldAt(id),
      ...(Number.isFinite(kvTokensMax) && { kvRatio: Math.round(kvRatio * 1_000) / 1_000 }),
      isLeaving: fleetChanges.isLeaving(id),
    }
  }

  #sourceOf(kind: RegistryKind, name: string): 'file' | 'registry' {
    return this.#wanted.entries.some((entry) => entry.kind === kind && entry.name === name) ? 'registry' : 'file'
  }
}

const refused = (refusal: AdminRefusal): AdminAnswer => ({ kind: 'refused', refusal })

const noSuchReplica = (id: string): AdminAnswer =>
  refused({ code: 'no-such-replica', because: `there is no replica ${id}`, param: 'replica' })
