import type { EngineCounters, EngineState } from './engine-state.ts'
import type { SpeculationCounters } from './speculation.ts'

/** What an engine shows of itself: gauges of this moment and sums since the start. */
export interface EngineView extends Readonly<EngineCounters> {
  readonly running: number
  readonly waiting: number
  readonly blockCount: number
  readonly blocksFree: number
  /** Tokens that all blocks hold. */
  readonly kvTokensMax: number
  /** Share of the blocks that some sequence holds: vLLM's `kv_cache_usage_perc`. */
  readonly kvUsageRatio: number
  /** Of the free blocks, those that the prefix cache still knows. */
  readonly blocksCached: number
  readonly busyUs: number
  readonly speculation: Readonly<SpeculationCounters> | undefined
}

export function viewEngine(state: EngineState, busyUs: number): EngineView {
  const { pool, cache, limits, waiting, prefilling, decodes, counters } = state
  return {
    running: decodes.count + prefilling.length,
    waiting: waiting.count,
    blockCount: pool.blockCount,
    blocksFree: pool.freeBlocks,
    kvTokensMax: pool.blockCount * limits.blockTokens,
    kvUsageRatio: pool.usedBlocks / pool.blockCount,
    blocksCached: cache.idleUnits * pool.unitBlocks,
    busyUs,
    speculation: decodes.counters && { ...decodes.counters },
    ...counters,
  }
}
