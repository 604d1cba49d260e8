import type { LiveStore } from '../assembly/live-store.ts'
import type { Clock } from '../base/clock.ts'
import { makeIds, makeSecretPart } from '../base/live-ids.ts'
import type { Config } from '../config/schema.ts'
import type { Control } from '../control/control.ts'
import { GatewayExchange } from '../control/gateway-exchange.ts'
import { RegistryRolloutKeeper } from '../control/registry-rollout-keeper.ts'
import { StoreLeadership } from '../control/store-leadership.ts'
import { CELL_DUTIES } from '../domain/leader.ts'
import type { Platform } from '../lifecycle/platform.ts'
import type { Journal, Leadership, SharedSecondStore } from '../lifecycle/ports.ts'
import type { Notice } from '../store/database.ts'
import { SqlGatewayStore } from '../store/sql-gateway-store.ts'
import { SqlLeaderStore } from '../store/sql-leader-store.ts'
import { SqlSecondStore } from '../store/sql-second-store.ts'
import type { LiveTelemetry } from '../telemetry/live-telemetry.ts'
import { type AskOthers, answerFrom } from './ask-gateways.ts'
import { CellSecrets } from './cell-secrets.ts'

/**
 * The cell that this gateway belongs to: who leads, which other gateways are there, and what they tell each other.
 *
 *   a shared store (PostgreSQL)    led by a row in it; gateways tell each other what they change
 *   a store of its own             this gateway leads: no other one can
 *   a store of its own, and peers  nobody leads: each gateway takes back a canary that fails, and promotes none
 */
export interface LiveCell {
  readonly leadership: Leadership
  /** Where gateways tell what they had of replicas' seconds, which the leader closes; undefined at a lone gateway. */
  readonly seconds: SharedSecondStore | undefined
  /** Keeps how far rollouts have got, for the next process and for the other gateways. */
  readonly keeper: RegistryRolloutKeeper
  /** Begins when the server listens. */
  start(platform: Platform, telemetry: Pick<LiveTelemetry, 'storyOf' | 'refusals'>): void
  readonly askOthers: AskOthers
  /** Gateways ask each other through the store: one PostgreSQL. Processes that share an embedded one have a quicker way. */
  readonly isShared: boolean
  /** Other gateways that were there a second ago. */
  otherCount(): number
  /** Answers what others ask under this kind; undefined: nothing is known here. */
  onAsked(kind: string, answer: (body: unknown) => string | undefined): void
  /** A secret of the cell: own until the store has told the common one. */
  secretOf(name: string): () => string
  /** Who leads, in words, for those who look after the platform; undefined where that goes without saying. */
  describe(): string | undefined
  /** Gives up the lead, and hears nothing more. Before the store closes, after the last write. */
  close(): Promise<void>
}

interface World {
  readonly clock: Clock
  readonly journal: Journal
  readonly store: LiveStore
  /** Other gateways serve the same fleet and share its limits. */
  readonly hasPeers: boolean
  /** Asked when it is there. */
  readonly control: () => Control
}

export function makeLiveCell({ sharing }: Pick<Config, 'sharing'>, parts: Omit<World, 'hasPeers'>): LiveCell {
  const world = { ...parts, hasPeers: sharing.redis.url !== undefined }
  return parts.store.isShared ? sharedCell(world) : loneCell(world)
}

const NO_STORE = 'several gateways need one PostgreSQL (store.url) to have a leader'

function makeKeeper(
  { clock, journal, control }: World,
  leadership: Leadership,
  depose: () => void,
): RegistryRolloutKeeper {
  return new RegistryRolloutKeeper({
    clock,
    journal,
    leadership,
    write: (editsOf, reason) => control().registry.change(editsOf, reason),
    onOverruled(model) {
      depose()
      control().overruled(model)
    },
  })
}

function loneCell(world: World): LiveCell {
  const { clock, journal, hasPeers } = world
  const role = hasPeers
    ? ({ kind: 'nobody', because: NO_STORE } as const)
    : ({ kind: 'leads', fence: undefined } as const)
  const leadership: Leadership = { role: () => role }
  return {
    leadership,
    seconds: undefined,
    keeper: makeKeeper(world, leadership, () => {}),
    start() {
      const because = role.kind === 'nobody' ? role.because : 'it is the only gateway'
      journal.record({ kind: 'leader-changed', at: clock.now(), name: CELL_DUTIES, role: role.kind, because })
    },
    askOthers: () => Promise.resolve([]),
    isShared: false,
    otherCount: () => 0,
    onAsked: () => {},
    secretOf: () => {
      const own = makeSecretPart()
      return () => own
    },
    describe: () => (hasPeers ? `no leader: ${NO_STORE}` : undefined),
    close: () => Promise.resolve(),
  }
}

function sharedCell(world: World): LiveCell {
  const { clock, journal, store, control } = world
  const makeId = makeIds()
  const gatewayId = `gw_${makeId()}`
  const leaders = new SqlLeaderStore(store.database)
  const leadership = new StoreLeadership({ clock, journal, store: leaders, name: CELL_DUTIES, gatewayId })
  const gateways = new SqlGatewayStore(store.database)
  const answerers = new Map<string, (body: unknown) => string | undefined>()
  const secrets = new CellSecrets(clock, gateways)
  let exchange: GatewayExchange | undefined
  let stopListening = (): Promise<void> => Promise.resolve()
  const keeper = makeKeeper(world, leadership, () => leadership.depose())
  return {
    leadership,
    seconds: { store: new SqlSecondStore(store.database), reporterId: gatewayId },
    keeper,
    start(platform, telemetry) {
      leadership.onChange(() => keeper.leaderChanged())
      const remembered = answerFrom(telemetry)
      const answerOf: typeof remembered = (question) =>
        (answerers.get(question.kind) ?? (() => remembered(question)))(question.body)
      const running = new GatewayExchange({ clock, store: gateways, gatewayId, makeId, platform, answerOf })
      exchange = running
      const readers: Readonly<Record<Exclude<Notice, 'anything'>, () => void>> = {
        registry: () => control().registry.notice(),
        tenancy: () => control().tenancy.tenancy.notice(),
        leader: () => leadership.notice(),
        question: () => running.beat(),
        answer: () => running.answered(),
      }
      stopListening = store.listen((notice) => {
        if (notice !== 'anything') readers[notice]?.()
        else for (const read of Object.values(readers)) read()
      })
      leadership.start()
      running.beat()
    },
    askOthers: (...asked) => exchange?.ask(...asked) ?? Promise.resolve([]),
    isShared: !store.isEmbedded,
    otherCount: () => exchange?.otherIds.length ?? 0,
    onAsked: (kind, answer) => void answerers.set(kind, answer),
    secretOf: (name) => secrets.of(name),
    describe() {
      const role = leadership.role()
      if (role.kind === 'nobody') return `no leader is known: ${role.because}`
      return role.kind === 'leads' ? 'this gateway leads' : 'another gateway leads'
    },
    async close() {
      secrets.close()
      await stopListening()
      await Promise.all([leadership.close(), exchange?.close()])
    },
  }
}
