import type { GpuProfile, MemoryShape } from './gpu-profile.ts'
import { KERNEL_FITS, type KernelFit } from './kernel-fits.ts'

/**
 * The catalogue of GPUs, with where each figure comes from.
 *
 * **Step times**: `kernel-fits.ts`, except where a comment says otherwise.
 *
 * **Memory**: what `nvidia-smi` reports for the SXM parts; weights from the parameter counts of Llama 3.1 8B and 70B
 * and 3.2 1B; 0.9 of it usable as in vLLM; 2 GiB a GPU for activations and graphs.
 *
 * **Prices** are for an hour of all GPUs of the profile. A100: the reference documents' 3 $. H100 and H200: middle of
 * the large clouds' on-demand range in 2026 (3.50–5.00 and 4.50–7.00 $). They differ by 4× between providers: set yours.
 */

const GIB = 2 ** 30

interface Gpu {
  readonly gpuBytes: number
  readonly usdPerHour: number
}

const GPUS: Readonly<Record<string, Gpu>> = {
  a100: { gpuBytes: 80 * GIB, usdPerHour: 3 },
  h100: { gpuBytes: 79.6 * GIB, usdPerHour: 4.25 },
  h200: { gpuBytes: 140.4 * GIB, usdPerHour: 5.75 },
}

interface ModelShape {
  readonly parameters: number
  readonly kvBytesPerToken: number
}

/** Keys and values: 2 · layers · KV heads · head size · 2 bytes. */
const MODELS: Readonly<Record<string, ModelShape>> = {
  'llama-1b': { parameters: 1.236e9, kvBytesPerToken: 2 * 16 * 8 * 64 * 2 },
  'llama-8b': { parameters: 8.03e9, kvBytesPerToken: 2 * 32 * 8 * 128 * 2 },
  'llama-70b': { parameters: 70.55e9, kvBytesPerToken: 2 * 80 * 8 * 128 * 2 },
}

const OVERHEAD_BYTES_PER_GPU = 2 * GIB

function memoryOf(gpu: string, model: string, gpuCount: number, bytesPerWeight: number): MemoryShape {
  const shape = MODELS[model] as ModelShape
  return {
    gpuBytes: (GPUS[gpu] as Gpu).gpuBytes * gpuCount,
    usableRatio: 0.9,
    weightBytes: shape.parameters * bytesPerWeight,
    overheadBytes: OVERHEAD_BYTES_PER_GPU * gpuCount,
    kvBytesPerToken: shape.kvBytesPerToken,
  }
}

function profileOfFit(fit: KernelFit): GpuProfile {
  const { gpu, model, gpuCount, dtype, coefficients } = fit
  return {
    name: `${gpu}-${model}${gpuCount > 1 ? `-tp${gpuCount}` : ''}${dtype === 'fp8' ? '-fp8' : ''}`,
    gpu,
    model,
    gpuCount,
    coefficients,
    memory: memoryOf(gpu, model, gpuCount, dtype === 'fp8' ? 1 : 2),
    usdPerHour: (GPUS[gpu] as Gpu).usdPerHour * gpuCount,
    source: 'ai-dynamo/aiconfigurator, vLLM kernels',
  }
}

/** The reference documents' A100: 1,024 tok/s prefill, 128·(0.4 + 0.6·√batch) tok/s decode, 32 GB for keys and values. */
const REFERENCE_A100: GpuProfile = {
  name: 'reference-a100',
  gpu: 'a100',
  model: 'llama-8b',
  gpuCount: 1,
  coefficients: { kind: 'reference', prefillTokensPerSecond: 1_024, decodeTokensPerSecond: 128, batchShare: 0.6 },
  memory: {
    gpuBytes: 32e9,
    usableRatio: 1,
    weightBytes: 0,
    overheadBytes: 0,
    kvBytesPerToken: (MODELS['llama-8b'] as ModelShape).kvBytesPerToken,
  },
  usdPerHour: 3,
  source: 'reference documents',
}

const PROFILES: ReadonlyMap<string, GpuProfile> = new Map(
  [...KERNEL_FITS.map(profileOfFit), REFERENCE_A100].map((profile) => [profile.name, profile]),
)

export function findGpuProfile(name: string): GpuProfile | undefined {
  return PROFILES.get(name)
}

export function gpuProfileNames(): readonly string[] {
  return [...PROFILES.keys()]
}
