import type { ChangeReason, FleetAnswer, FleetChange } from '../fleet/change-fleet.ts'
import type { Policies } from '../policies.ts'
import type { World } from '../ports.ts'

/** What autoscaling needs of the platform: its world, its meters, and a way to drain replicas. */
export interface ScalingParts {
  readonly world: World
  readonly policies: Policies
  changeFleet(change: FleetChange, reason: ChangeReason): FleetAnswer
}
