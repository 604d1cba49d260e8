import type { KeepReason, RolloutKeeper } from '../lifecycle/ports.ts'

/** How far rollouts have got, for as long as the process lives: for simulations, and as the plain twin in tests. */
export class MemoryRolloutKeeper implements RolloutKeeper {
  /** The newest memory of each model. */
  readonly #memories = new Map<string, Kept>()

  keep(model: string, memory: Kept['memory'], reason: KeepReason): void {
    this.#memories.set(model, { memory, reason })
  }

  kept(model: string): Kept | undefined {
    return this.#memories.get(model)
  }
}

interface Kept {
  readonly memory: Parameters<RolloutKeeper['keep']>[1]
  readonly reason: KeepReason
}
