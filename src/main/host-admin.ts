import { secondsToUs } from '../base/clock.ts'
import { detailOf } from '../base/detail-of.ts'
import type { RegistryEdit, RegistryKind } from '../domain/registry.ts'
import type {
  AdminAdmission,
  AdminAnswer,
  AdminCommand,
  AdminModel,
  AdminPool,
  AdminReason,
  AdminReloadAnswer,
  AdminRestartAnswer,
  FleetAdmin,
} from '../gateway/fleet-admin.ts'
import { askOthers, type Seat } from './seat.ts'

/**
 * Administration of a host with several processes. What is stored reaches the others through the store, which they look
 * at again at once; what is kept in memory (a drain, the file read again) is carried out by each of them before the
 * answer goes out. Figures of pools are the host's.
 */
export class HostAdmin implements FleetAdmin {
  readonly #own: FleetAdmin
  readonly #seat: Seat

  constructor(own: FleetAdmin, seat: Seat) {
    this.#own = own
    this.#seat = seat
    const { line } = seat
    line.on('drain-replica', ({ replicaId, isDrained, reason }: DrainCall) => own.drain(replicaId, isDrained, reason))
    line.on('pause-tenant', ({ tenantId, isPaused, reason }: PauseCall) => own.pause(tenantId, isPaused, reason))
    line.on('change-mode', ({ mode, reason }: ModeCall) => own.changeMode(mode, reason))
    line.on('reload', (reason: AdminReason) => own.reload(reason))
    line.on('pools', () => own.pools())
  }

  async drain(replicaId: string, isDrained: boolean, reason: AdminReason): Promise<AdminAnswer> {
    const answer = await this.#own.drain(replicaId, isDrained, reason)
    if (answer.kind === 'changed') await this.#tell<DrainCall>('drain-replica', { replicaId, isDrained, reason })
    return answer
  }

  admission(): AdminAdmission {
    return this.#own.admission()
  }

  async pause(tenantId: string, isPaused: boolean, reason: AdminReason): Promise<AdminAnswer> {
    const answer = await this.#own.pause(tenantId, isPaused, reason)
    if (answer.kind === 'changed') await this.#tell<PauseCall>('pause-tenant', { tenantId, isPaused, reason })
    return answer
  }

  async changeMode(mode: AdminAdmission['mode'], reason: AdminReason): Promise<AdminAnswer> {
    const answer = await this.#own.changeMode(mode, reason)
    if (answer.kind === 'changed') await this.#tell<ModeCall>('change-mode', { mode, reason })
    return answer
  }

  async reload(reason: AdminReason): Promise<AdminReloadAnswer> {
    const answer = await this.#own.reload(reason)
    if (answer.kind !== 'refused') await this.#tell('reload', reason)
    return answer
  }

  async restart({ by, because }: AdminReason): Promise<AdminRestartAnswer> {
    try {
      const answer = await this.#seat.line.ask('host-restart', `${by}: ${because}`, secondsToUs(5))
      return answer as AdminRestartAnswer
    } catch (error) {
      const why = `the supervisor of this host does not answer (${detailOf(error)})`
      return { kind: 'refused', refusal: { code: 'nothing-to-restart', because: why, param: null } }
    }
  }

  async pools(): Promise<readonly AdminPool[]> {
    const [own, others] = await Promise.all([
      this.#own.pools(),
      askOthers<readonly AdminPool[]>(this.#seat, 'pools', undefined),
    ])
    return own.map((pool) =>
      addFigures(
        pool,
        others.flatMap((list) => list.find(({ id }) => id === pool.id) ?? []),
      ),
    )
  }

  async models(): Promise<readonly AdminModel[]> {
    const [models, pools] = await Promise.all([this.#own.models(), this.pools()])
    return models.map((model) => ({ ...model, pools: pools.filter((pool) => pool.model === model.name) }))
  }

  rollouts(): ReturnType<FleetAdmin['rollouts']> {
    return this.#own.rollouts()
  }

  learned(poolId: string): ReturnType<FleetAdmin['learned']> {
    return this.#own.learned(poolId)
  }

  history(ask: Parameters<FleetAdmin['history']>[0]): ReturnType<FleetAdmin['history']> {
    return this.#own.history(ask)
  }

  rollout(model: string, command: AdminCommand, reason: AdminReason): Promise<AdminAnswer> {
    return this.#stored(this.#own.rollout(model, command, reason))
  }

  edit(edits: readonly RegistryEdit[], reason: AdminReason): Promise<AdminAnswer> {
    return this.#stored(this.#own.edit(edits, reason))
  }

  remove(kind: RegistryKind, name: string, reason: AdminReason): Promise<AdminAnswer> {
    return this.#stored(this.#own.remove(kind, name, reason))
  }

  addReplica(poolId: string, url: string, reason: AdminReason): Promise<AdminAnswer> {
    return this.#stored(this.#own.addReplica(poolId, url, reason))
  }

  removeReplica(replicaId: string, reason: AdminReason): Promise<AdminAnswer> {
    return this.#stored(this.#own.removeReplica(replicaId, reason))
  }

  async #stored(asked: Promise<AdminAnswer>): Promise<AdminAnswer> {
    const answer = await asked
    if (answer.kind === 'changed') await this.#tell('look-at-registry', undefined)
    return answer
  }

  async #tell<T>(what: string, value: T): Promise<void> {
    await askOthers(this.#seat, what, value)
  }
}

interface PauseCall {
  readonly tenantId: string
  readonly isPaused: boolean
  readonly reason: AdminReason
}

interface ModeCall {
  readonly mode: AdminAdmission['mode']
  readonly reason: AdminReason
}

interface DrainCall {
  readonly replicaId: string
  readonly isDrained: boolean
  readonly reason: AdminReason
}

/** Requests add up over the processes; what a replica is, each of them knows. */
function addFigures(own: AdminPool, others: readonly AdminPool[]): AdminPool {
  const sum = (of: (pool: AdminPool) => number): number => others.reduce((total, pool) => total + of(pool), of(own))
  const runningAt = (pool: AdminPool, id: string): number =>
    pool.replicas.find((replica) => replica.id === id)?.running ?? 0
  return {
    ...own,
    waiting: sum(({ waiting }) => waiting),
    running: sum(({ running }) => running),
    replicas: own.replicas.map((replica) => ({ ...replica, running: sum((pool) => runningAt(pool, replica.id)) })),
  }
}
