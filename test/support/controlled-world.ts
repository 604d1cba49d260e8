import { assemble } from '../../src/assembly/assemble.ts'
import { engineOptionsOf } from '../../src/assembly/engine-options.ts'
import type { LiveBackends } from '../../src/assembly/live-backends.ts'
import { EngineDriver } from '../../src/backends/engine-driver.ts'
import { SimulatedBackend } from '../../src/backends/simulated.ts'
import { Cancellation } from '../../src/base/cancellation.ts'
import { VirtualClock } from '../../src/base/virtual-clock.ts'
import type { Config } from '../../src/config/schema.ts'
import { type Control, makeControl } from '../../src/control/control.ts'
import { RegistryRolloutKeeper } from '../../src/control/registry-rollout-keeper.ts'
import { wantedOf } from '../../src/control/wanted.ts'
import type { Entry, Settled } from '../../src/domain/entry.ts'
import type { Replica } from '../../src/domain/fleet.ts'
import type { RegistryStore } from '../../src/domain/registry.ts'
import type { Request } from '../../src/domain/request.ts'
import type { TenancyStore } from '../../src/domain/tenancy-store.ts'
import { Engine } from '../../src/engine/engine.ts'
import type { AdminReloadAnswer } from '../../src/gateway/fleet-admin.ts'
import { ControlLoop } from '../../src/lifecycle/control-loop.ts'
import type { Platform } from '../../src/lifecycle/platform.ts'
import type { Backend } from '../../src/lifecycle/ports.ts'
import { serveRequest } from '../../src/lifecycle/serve-request.ts'
import { MemoryRegistryStore } from '../../src/store/memory-registry-store.ts'
import { MemoryTenancyStore } from '../../src/store/memory-tenancy-store.ts'
import { makeRequest } from './requests.ts'
import { RecordingSink } from './virtual-world.ts'

/**
 * A whole gateway in virtual time, without its front door: platform, control plane, registry and control loop, put
 * together as the server does it, on simulated engines that answer everybody the same.
 */
const TICK_US = 1_000_000
const SCRIPT = { promptTokens: 400, outputTokens: 40, prefixHashes: [], finishReason: 'stop' } as const

export interface ControlledOptions {
  readonly store?: RegistryStore
  readonly tenancyStore?: TenancyStore
  /** The store was used by a process before this one. */
  readonly isInUse?: boolean
  /** Other processes may write to the store: the registry looks for their revisions. */
  readonly isShared?: boolean
  /** In place of the simulated engine of a replica. */
  readonly backendOf?: (replica: Replica, clock: VirtualClock) => Backend | undefined
}

export class ControlledWorld {
  readonly clock = new VirtualClock(TICK_US)
  readonly entries: Entry[] = []
  readonly complaints: string[] = []
  readonly removedTenants: string[] = []
  readonly platform: Platform
  readonly control: Control
  readonly #loop: ControlLoop

  private constructor(config: Config, options: ControlledOptions) {
    const { clock } = this
    const { store = new MemoryRegistryStore(), isInUse = false, isShared = false } = options
    const journal = { record: (entry: Entry) => void this.entries.push(entry) }
    const backends = simulatedBackends(config, clock, options)
    const keeper = new RegistryRolloutKeeper({
      clock,
      journal,
      write: (editsOf, reason) => this.control.registry.change(editsOf, reason),
    })
    this.platform = assemble(config, { clock, journal, backends, rolloutKeeper: keeper })
    this.control = makeControl({
      founded: wantedOf(config, []),
      load: undefined,
      clock,
      platform: this.platform,
      backends,
      registry: { store, isInUse, isShared },
      tenancyStore: options.tenancyStore ?? new MemoryTenancyStore(),
      keeper,
      onFault: (where, error) => void this.complaints.push(`${where}: ${String(error)}`),
      onReloaded: () => {},
      onTenantRemoved: (tenantId) => void this.removedTenants.push(tenantId),
      complain: (problem) => void this.complaints.push(problem),
    })
    this.#loop = new ControlLoop(this.platform, TICK_US)
  }

  static async start(config: Config, options: ControlledOptions = {}): Promise<ControlledWorld> {
    const world = new ControlledWorld(config, options)
    const started = world.#loop.start().then(() => world.control.registry.start())
    await world.clock.run(world.clock.now())
    await started
    return world
  }

  reload(next: Config): Promise<AdminReloadAnswer> {
    return this.control.reload(() => next, { by: 'test', because: 'a test' })
  }

  serve(overrides: Partial<Request>): Promise<Settled> {
    const request = makeRequest({ arrivedAt: this.clock.now(), ...overrides })
    return serveRequest(this.platform, request, new Cancellation(), new RecordingSink())
  }

  /** Until this instant; ticks go on. */
  run(untilAt: number): Promise<void> {
    return this.clock.run(untilAt)
  }

  async close(): Promise<void> {
    this.#loop.stop()
    const closed = this.control.close()
    await this.clock.run()
    await closed
  }
}

function simulatedBackends(config: Config, clock: VirtualClock, { backendOf }: ControlledOptions): LiveBackends {
  const made = new Map<string, Backend>()
  const make = (): Backend => {
    const driver = new EngineDriver(new Engine(engineOptionsOf(config, 'h100-llama-8b')), clock)
    const scriptsFor = ({ choiceCount }: Request) => ({
      kind: 'made' as const,
      scripts: Array.from({ length: choiceCount }, (_, i) => ({ ...SCRIPT, sharesPrompt: i > 0 })),
    })
    return new SimulatedBackend(driver, { scriptsFor })
  }
  return {
    prepare: () => Promise.resolve(),
    add: () => {},
    putModel: () => {},
    dropModel: () => {},
    useKey: () => {},
    forgetKey: () => {},
    of(replica) {
      const backend = made.get(replica.id) ?? backendOf?.(replica, clock) ?? make()
      made.set(replica.id, backend)
      return backend
    },
    forget: (replica) => void made.delete(replica.id),
    hasKnownTokenizer: () => false,
    metadataOf: () => Promise.resolve(undefined),
    close: () => Promise.resolve(),
  }
}
