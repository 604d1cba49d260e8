import type { EngineLimits } from './engine-state.ts'

/**
 * What a model on a GPU costs, as data: how long a step takes, how much memory is left for keys and values, what an
 * hour of it costs. `step-time.ts` has the formula, `gpu-profiles.ts` the catalogue.
 *
 * All durations are microseconds.
 */

/** The terms of a step's time on real hardware; see `step-time.ts` for what each means. */
export interface RooflineCoefficients {
  readonly kind: 'roofline'
  readonly weightsUs: number
  readonly computeUsPerToken: number
  readonly kneeSharpness: number
  readonly lmHeadUs: number
  readonly decodeBaseUs: number
  readonly kvReadUsPerToken: number
  /** Attention of one sequence where a kernel does not split its context: a small batch waits for the longest. */
  readonly contextUsPerToken: number
  readonly decodeUsPerSequence: number
  readonly prefillBaseUs: number
  /** Attention of a chunk to itself, and to the context before it, which is read through the block table. */
  readonly attentionUsPerPair: number
  readonly contextAttentionUsPerPair: number
  readonly allReduceBaseUs: number
  readonly allReduceUsPerToken: number
  readonly hostUs: number
  /** What a host that launches a prefill kernel by kernel needs for it, beside the GPU; and how sharply the slower of
   * the two decides. Zero where prefills are captured graphs. */
  readonly prefillFloorUs: number
  readonly prefillFloorSharpness: number
  readonly decodeFloorUs: number
}

/** The reference documents' A100: a prefill rate, and a decode rate that grows with the root of the batch. */
export interface ReferenceCoefficients {
  readonly kind: 'reference'
  readonly prefillTokensPerSecond: number
  readonly decodeTokensPerSecond: number
  readonly batchShare: number
}

export type StepCoefficients = RooflineCoefficients | ReferenceCoefficients

export interface GpuProfile {
  /** `gpu-model[-tpN][-fp8]`: what people write on the command line. */
  readonly name: string
  readonly gpu: string
  readonly model: string
  /** GPUs that share the model by tensor parallelism. */
  readonly gpuCount: number
  /** Kernel times. */
  readonly coefficients: StepCoefficients
  /** What a whole engine on this GPU was measured to do differently from its kernels alone: host, paging, graphs. */
  readonly serving?: Partial<Omit<RooflineCoefficients, 'kind'>>
  readonly memory: MemoryShape
  readonly usdPerHour: number
  /** Where the step times come from. */
  readonly source: string
}

/**
 * The host time of an engine that was not recorded at work: what is left of the host between two steps when it prepares
 * the next step beside the GPU, as vLLM's asynchronous scheduling does. 250 µs is an assumption, the middle of the 200 to
 * 300 µs that vLLM issue 10634 expects of it. The engine that we recorded on an H200 pauses 90 µs (a few sequences) to
 * 300 µs (256) between its decode steps; its host time, 0.85 ms, also has the work that it does not overlap.
 */
export const ASSUMED_SERVING: NonNullable<GpuProfile['serving']> = { hostUs: 250 }

export interface MemoryShape {
  /** Memory of all GPUs together, and the share of it that the engine may use. */
  readonly gpuBytes: number
  readonly usableRatio: number
  readonly weightBytes: number
  /** Activations, graphs and the allocator's waste, all GPUs together. */
  readonly overheadBytes: number
  readonly kvBytesPerToken: number
}

/** What an engine of this profile runs with. */
export function servingCoefficients(profile: GpuProfile): StepCoefficients {
  const { coefficients, serving } = profile
  return coefficients.kind === 'roofline' ? { ...coefficients, ...serving } : coefficients
}

export const BLOCK_TOKENS = 16

/** Blocks that fit into what weights and activations leave. */
export function kvBlockCount(memory: MemoryShape, blockTokens = BLOCK_TOKENS): number {
  const kvBytes = memory.gpuBytes * memory.usableRatio - memory.weightBytes - memory.overheadBytes
  return Math.max(0, Math.floor(kvBytes / (memory.kvBytesPerToken * blockTokens)))
}

/** vLLM's usual limits on a server GPU, with the blocks that the profile has memory for. */
export function limitsOf(profile: GpuProfile, blockTokens = BLOCK_TOKENS): EngineLimits {
  return { sequencesMax: 256, tokenBudget: 2_048, blockCount: kvBlockCount(profile.memory, blockTokens), blockTokens }
}
