import { redactedUrl } from '../config/redact.ts'
import type { Pool, Replica } from '../domain/fleet.ts'
import type { HistoryAsk, RegistryChange, RegistryEdit, RegistryKind } from '../domain/registry.ts'
import type {
  AdminAnswer,
  AdminCommand,
  AdminModel,
  AdminPool,
  AdminReason,
  AdminRefusal,
  AdminRelease,
  AdminReplica,
  AdminRollout,
  FleetAdmin,
} from '../gateway/fleet-admin.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { FleetDiff } from './fleet-diff.ts'
import type { LiveRegistry } from './live-registry.ts'
import type { LiveRollouts } from './live-rollouts.ts'

/** The running platform as administrators see it, and what they may do with it. */
export class LiveAdmin implements FleetAdmin {
  readonly #platform: Platform
  readonly #registry: LiveRegistry
  readonly #diff: FleetDiff
  readonly #rollouts: LiveRollouts

  constructor(parts: { platform: Platform; registry: LiveRegistry; diff: FleetDiff; rollouts: LiveRollouts }) {
    this.#platform = parts.platform
    this.#registry = parts.registry
    this.#diff = parts.diff
    this.#rollouts = parts.rollouts
  }

  rollouts(): readonly AdminRollout[] {
    return this.#rollouts.list()
  }

  rollout(model: string, command: AdminCommand, reason: AdminReason): Promise<AdminAnswer> {
    return this.#rollouts.command(model, command, reason)
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

  edit(edits: readonly RegistryEdit[], reason: AdminReason): Promise<AdminAnswer> {
    return this.#registry.edit(edits, reason)
  }

  remove(kind: RegistryKind, name: string, reason: AdminReason): Promise<AdminAnswer> {
    return this.#registry.remove(kind, name, reason)
  }

  async addReplica(poolId: string, url: string, reason: AdminReason): Promise<AdminAnswer> {
    return this.#editReplicas(poolId, reason, (urls) => [...urls.filter((known) => known !== url), url])
  }

  async removeReplica(replicaId: string, reason: AdminReason): Promise<AdminAnswer> {
    const replica = this.#platform.policies.fleet.replica(replicaId)
    if (replica === undefined) return noSuchReplica(replicaId)
    const url = this.#diff.setups.get(replica.poolId)?.urls.get(replicaId)
    if (url === undefined) {
      const because = `${replicaId} was found by discovery, which would find it again. Drain it, or take it out there`
      return refused({ code: 'discovered', because, param: 'replica' })
    }
    return this.#editReplicas(replica.poolId, reason, (urls) => urls.filter((known) => known !== url))
  }

  drain(replicaId: string, isDrained: boolean, reason: AdminReason): AdminAnswer {
    const kind = isDrained ? 'drain-replica' : 'undrain-replica'
    const answer = this.#platform.changeFleet({ kind, replicaId }, reason)
    return answer.kind === 'changed' ? { kind: 'changed', revision: undefined } : noSuchReplica(replicaId)
  }

  history(ask: HistoryAsk): Promise<readonly RegistryChange[] | AdminRefusal> {
    return this.#registry.history(ask)
  }

  #editReplicas(
    poolId: string,
    reason: AdminReason,
    edit: (urls: readonly string[]) => readonly string[],
  ): Promise<AdminAnswer> {
    const entry = this.#registry.entries.find(({ kind, name }) => kind === 'pool' && name === poolId)
    // A pool of the file is refused where all such edits are; one that nobody knows too.
    if (entry === undefined) {
      const isInFile = this.#diff.isInFile(poolId)
      return this.#registry.edit([{ kind: 'pool', name: poolId, body: isInFile ? {} : undefined }], reason)
    }
    const { replicas, ...body } = entry.body
    const backend = body['backend'] as { readonly url?: string } | undefined
    const { url, ...rest } = backend ?? {}
    const known = Array.isArray(replicas) ? (replicas as string[]) : url === undefined ? [] : [url]
    const next = { ...body, backend: rest, replicas: edit(known) }
    return this.#registry.edit([{ kind: 'pool', name: poolId, body: next }], reason)
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
      source: this.#diff.isInFile(pool.id) ? 'file' : 'registry',
      model: pool.model,
      release: pool.releaseId,
      region: pool.region,
      backend: this.#diff.setups.get(pool.id)?.backend.kind ?? 'closing',
      isClosing: this.#platform.fleetChanges.isLeaving(pool.id),
      waiting: facts?.queuedCount ?? 0,
      running: facts?.heldCount ?? 0,
      replicas: pool.replicas.map((replica) => this.#replica(replica)),
    }
  }

  #replica({ id, poolId }: Replica): AdminReplica {
    const { policies, fleetChanges } = this.#platform
    const url = this.#diff.setups.get(poolId)?.urls.get(id)
    return {
      id,
      url: url === undefined ? undefined : redactedUrl(url),
      health: policies.health.kindOf(id) ?? 'away',
      running: policies.dispatcher.heldAt(id),
      isLeaving: fleetChanges.isLeaving(id),
    }
  }

  #sourceOf(kind: RegistryKind, name: string): 'file' | 'registry' {
    return this.#registry.entries.some((entry) => entry.kind === kind && entry.name === name) ? 'registry' : 'file'
  }
}

const refused = (refusal: AdminRefusal): AdminAnswer => ({ kind: 'refused', refusal })

const noSuchReplica = (id: string): AdminAnswer =>
  refused({ code: 'no-such-replica', because: `there is no replica ${id}`, param: 'replica' })
