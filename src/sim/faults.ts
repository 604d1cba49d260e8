import { type Clock, secondsToUs } from '../base/clock.ts'
import type { SimulatedGateway } from './gateway.ts'
import type { RetrievalWorld } from './retrieval-world.ts'
import { restartInTurn } from './rolling-restart.ts'
import type { Fault } from './scenario/scenario.ts'
import { SHARED_FAULTS, type SharedWorld } from './sharing/shared-world.ts'
import type { SimulatedFleet, SimulatedReplica } from './world.ts'

/** The parts of a simulation that faults affect. */
interface World {
  readonly gateways: readonly SimulatedGateway[]
  readonly fleet: SimulatedFleet
  readonly retrieval: RetrievalWorld
  readonly shared: SharedWorld | undefined
}

/** Starts each fault at its time, and ends it again. */
export function scheduleFaults(clock: Clock, world: World, faults: readonly Fault[]): void {
  const { gateways, fleet, retrieval, shared } = world
  const startAt = clock.now()
  const isShared = ({ kind }: Fault): boolean => SHARED_FAULTS.includes(kind)
  shared?.schedule(startAt, faults.filter(isShared))
  for (const fault of faults) {
    if (isShared(fault)) continue
    if (isOfRetrieval(fault)) {
      clock.at(startAt + secondsToUs(fault.atS), () => strikeRetrieval(fault, retrieval))
      clock.at(startAt + secondsToUs(fault.atS + fault.forS), () => retrieval.recover(fault.target))
      continue
    }
    const targets = [...fleet.all()].filter(
      ({ replica }) =>
        [replica.id, replica.poolId, replica.releaseId].includes(fault.target) || isLostWith(fault, replica.region),
    )
    const lost = gateways.length > 1 ? gateways.filter(({ region }) => isLostWith(fault, region)) : []
    if (targets.length === 0)
      throw new Error(`a fault names ${fault.target}, but no replica, pool, release or region is called that`)
    if (fault.kind === 'spot-notice') {
      announceEnd(clock, startAt, fault, gateways, targets)
      continue
    }
    if (fault.kind === 'rolling-restart') {
      clock.at(
        startAt + secondsToUs(fault.atS),
        () => void restartInTurn(clock, gatewayOf(gateways, targets), targets, fault.forS),
      )
      continue
    }
    clock.at(startAt + secondsToUs(fault.atS), () => {
      for (const gateway of lost) gateway.lose()
      for (const target of targets) strike(fault, target)
    })
    clock.at(startAt + secondsToUs(fault.atS + fault.forS), () => {
      for (const target of targets) target.recover()
      for (const gateway of lost) gateway.recover()
    })
  }
}

/** Clouds take spot machines back half a minute to two minutes after they say so. */
const NOTICE_US = secondsToUs(30)

/** The replicas' end is announced: they are drained, and gone after the notice; later others take their places. */
function announceEnd(
  clock: Clock,
  startAt: number,
  { atS, forS }: Fault,
  gateways: readonly SimulatedGateway[],
  targets: readonly SimulatedReplica[],
): void {
  const at = startAt + secondsToUs(atS)
  const change = (kind: 'drain-replica' | 'undrain-replica', because: string): void => {
    for (const { platform } of gateways)
      for (const { replica } of targets)
        platform.changeFleet({ kind, replicaId: replica.id }, { by: 'operator', because })
  }
  clock.at(at, () => change('drain-replica', 'its end was announced'))
  clock.at(at + NOTICE_US, () => {
    for (const target of targets) target.crash()
  })
  clock.at(at + Math.max(NOTICE_US, secondsToUs(forS)), () => {
    for (const target of targets) target.recover()
    change('undrain-replica', 'another machine has taken its place')
  })
}

const isLostWith = (fault: Fault, region: string): boolean => fault.kind === 'region-loss' && region === fault.target

/** The gateway of the region of these replicas; the only gateway, if there is one. */
function gatewayOf(gateways: readonly SimulatedGateway[], [first]: readonly SimulatedReplica[]): SimulatedGateway {
  return gateways.find(({ region }) => region === first?.replica.region) ?? (gateways[0] as SimulatedGateway)
}

const isOfRetrieval = ({ kind }: Fault): boolean =>
  kind === 'retrieval-slow' || kind === 'retrieval-dead' || kind === 'store-loss'

function strikeRetrieval({ kind, target, factor }: Fault, retrieval: RetrievalWorld): void {
  if (kind === 'store-loss') retrieval.lose(target)
  else retrieval.slowDown(target, kind === 'retrieval-dead' ? Number.POSITIVE_INFINITY : (factor ?? 10))
}

function strike(fault: Fault, target: SimulatedReplica): void {
  switch (fault.kind) {
    case 'replica-crash':
    case 'pool-loss':
    case 'region-loss':
      target.crash()
      return
    case 'replica-hang':
      target.slowDown(Number.POSITIVE_INFINITY)
      return
    case 'replica-freeze':
      target.freeze()
      return
    case 'replica-slow':
      target.slowDown(fault.factor ?? 4)
      return
    case 'replica-errors':
      target.misbehave({ errorRatio: fault.ratio ?? 1 })
      return
    case 'replica-refusals':
      target.misbehave({ refusalRatio: fault.ratio ?? 1 })
      return
    case 'replica-wrong':
      target.misbehave({ wrongRatio: fault.ratio ?? 1 })
      return
    default:
    // Faults of retrieval, of gateways and of the lease store strike no replica.
  }
}
