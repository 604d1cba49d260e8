import type { Fence } from '../domain/leader.ts'

/**
 * Who changes the number of a pool's replicas? Kubernetes, a command, a webhook, the simulator: one adapter each.
 *
 * Obligations: `scale` says "there shall be so many", so carrying it out twice is harmless; it settles within a bound of
 * its own, tries again what may only have been unlucky, and never throws. One call is made at a time for each pool. Before
 * each further try it asks `isOver`: a leader that was followed must not write its number over the next one's.
 */
export interface Actuator {
  scale(order: ScaleOrder, isOver?: () => boolean): Promise<ScaleAnswer>
  /** How many there shall be at present, where the other side knows; undefined when it cannot be asked. */
  read?(): Promise<number | undefined>
}

export interface ScaleOrder {
  readonly poolId: string
  readonly from: number
  readonly to: number
  /** Replicas that were drained for it, by id: these should go. Nobody where replicas are added. */
  readonly leaving: readonly string[]
  /** Of the leader that orders, where there could be another one: a higher fence is a later leader's. */
  readonly fence: Fence | undefined
  readonly because: string
}

/** `note`: it is done, and something about it should be known. */
export type ScaleAnswer =
  | { readonly kind: 'done'; readonly note?: string }
  | { readonly kind: 'failed'; readonly because: string }

export interface Actuators {
  /** Undefined where the pool has none: then orders are only journalled. */
  of(poolId: string): Actuator | undefined
  /** Share of the GPUs' time that is used, as their exporter says; undefined where none is named, or none answers. */
  gpuUseRatio?(poolId: string): number | undefined
}

/** Drains for every gateway of the cell; absent, only this one is told. */
export interface CellDrains {
  set(replicaId: string, isDrained: boolean, because: string): void
}
