import { ASSUMED_SERVING, type GpuProfile, type MemoryShape, type RooflineCoefficients } from './gpu-profile.ts'
import { shareProfile } from './gpu-share.ts'
import { KERNEL_FITS, type KernelFit } from './kernel-fits.ts'

/**
 * The catalogue of GPUs, with where each figure comes from.
 *
 * **Step times**: `kernel-fits.ts`, except where a comment says otherwise. **Host time**: measured for `h200-llama-8b`,
 * `ASSUMED_SERVING` for all other kernels; the reference's rates are those of a whole engine and have it in them.
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

/** Everything about a profile but its step times. */
function shapeOf(
  fit: Omit<KernelFit, 'coefficients'>,
): Pick<GpuProfile, 'gpu' | 'model' | 'gpuCount' | 'memory' | 'usdPerHour'> {
  const { gpu, model, gpuCount } = fit
  const { gpuBytes, usdPerHour } = GPUS[gpu] as Gpu
  const { parameters, kvBytesPerToken } = MODELS[model] as ModelShape
  const memory: MemoryShape = {
    gpuBytes: gpuBytes * gpuCount,
    usableRatio: 0.9,
    weightBytes: parameters * (fit.dtype === 'fp8' ? 1 : 2),
    overheadBytes: OVERHEAD_BYTES_PER_GPU * gpuCount,
    kvBytesPerToken,
  }
  return { gpu, model, gpuCount, memory, usdPerHour: usdPerHour * gpuCount }
}

function profileOfFit(fit: KernelFit): GpuProfile {
  const name = `${fit.gpu}-${fit.model}${fit.gpuCount > 1 ? `-tp${fit.gpuCount}` : ''}${fit.dtype === 'fp8' ? '-fp8' : ''}`
  return {
    ...shapeOf(fit),
    name: name === H200_LLAMA_8B.name ? `${name}-vllm` : name,
    coefficients: fit.coefficients,
    serving: ASSUMED_SERVING,
    source: 'ai-dynamo/aiconfigurator, vLLM kernels',
  }
}

/**
 * Our own measurements of one H200 (bf16, PyTorch with CUDA graphs): `test/fixtures/gpu/h200-steps.csv`, fitted by
 * `fitProfile`; what the engine adds, from `h200-served-*.csv` (six recordings on two machines, from 8 to 26 requests a
 * second), by `fitServing`. Its prefill runs without graphs, hence the floor. vLLM's kernels on the same GPU are
 * `h200-llama-8b-vllm`.
 */
const H200_LLAMA_8B: GpuProfile = {
  ...shapeOf({ gpu: 'h200', model: 'llama-8b', gpuCount: 1, dtype: 'bf16' }),
  name: 'h200-llama-8b',
  coefficients: {
    kind: 'roofline',
    weightsUs: 4538.7,
    computeUsPerToken: 24.462,
    kneeSharpness: 2.4995,
    lmHeadUs: 0,
    decodeBaseUs: 680.22,
    kvReadUsPerToken: 0.029429,
    contextUsPerToken: 0.35012,
    decodeUsPerSequence: 3.1481,
    prefillBaseUs: 843.99,
    attentionUsPerPair: 0.00085879,
    contextAttentionUsPerPair: 0.00085879,
    allReduceBaseUs: 0,
    allReduceUsPerToken: 0,
    hostUs: 0,
    prefillFloorUs: 0,
    prefillFloorSharpness: 4,
    decodeFloorUs: 0,
  },
  serving: {
    hostUs: 847.8,
    decodeUsPerSequence: 9.734,
    kvReadUsPerToken: 0.0314,
    prefillBaseUs: 1_619,
    prefillFloorUs: 21_110,
    prefillFloorSharpness: 8.337,
    contextAttentionUsPerPair: 0.002628,
    contextUsPerToken: 0,
  },
  source: 'own measurements, h200-steps.csv and h200-served-steps.csv',
}

const H200_LLAMA_1B: GpuProfile = {
  ...shapeOf({ gpu: 'h200', model: 'llama-1b', gpuCount: 1, dtype: 'bf16' }),
  name: 'h200-llama-1b',
  coefficients: {
    kind: 'roofline',
    weightsUs: 1063,
    computeUsPerToken: 3.871,
    kneeSharpness: 1.9688,
    lmHeadUs: 0,
    decodeBaseUs: 267.99,
    kvReadUsPerToken: 0.0090172,
    contextUsPerToken: 0.13096,
    decodeUsPerSequence: 1.4075,
    prefillBaseUs: 336.55,
    attentionUsPerPair: 0.00028434,
    contextAttentionUsPerPair: 0.00028434,
    allReduceBaseUs: 0,
    allReduceUsPerToken: 0,
    hostUs: 0,
    prefillFloorUs: 0,
    prefillFloorSharpness: 4,
    decodeFloorUs: 0,
  },
  serving: ASSUMED_SERVING,
  source: 'own measurements, h200-steps.csv',
}

/**
 * No A100 or H100 was at hand for the 1B: the H200's figures, scaled by what the same kernels of the 8B need on either
 * GPU. Launch and reduction overheads stay.
 */
function scaledFromH200(gpu: string): GpuProfile {
  const kernels = (name: string): RooflineCoefficients =>
    (KERNEL_FITS.find((fit) => fit.gpu === name && fit.model === 'llama-8b' && fit.gpuCount === 1) as KernelFit)
      .coefficients
  const there = kernels(gpu)
  const here = kernels('h200')
  const known = H200_LLAMA_1B.coefficients as RooflineCoefficients
  const scaled = (term: 'weightsUs' | 'computeUsPerToken' | 'kvReadUsPerToken' | 'attentionUsPerPair'): number =>
    (known[term] * there[term]) / here[term]
  const coefficients = {
    ...known,
    weightsUs: scaled('weightsUs'),
    computeUsPerToken: scaled('computeUsPerToken'),
    kvReadUsPerToken: scaled('kvReadUsPerToken'),
    attentionUsPerPair: scaled('attentionUsPerPair'),
    contextAttentionUsPerPair: scaled('attentionUsPerPair'),
  }
  return {
    ...shapeOf({ gpu, model: 'llama-1b', gpuCount: 1, dtype: 'bf16' }),
    name: `${gpu}-llama-1b`,
    coefficients,
    serving: ASSUMED_SERVING,
    source: 'scaled from h200-llama-1b by the 8B kernels of both GPUs',
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
  [
    H200_LLAMA_8B,
    H200_LLAMA_1B,
    ...KERNEL_FITS.map(profileOfFit),
    ...['a100', 'h100'].map(scaledFromH200),
    REFERENCE_A100,
  ].map((profile) => [profile.name, profile]),
)

/** Profiles beside the catalogue, by the name under which a command was given them: fitted or learned, from files. */
const ADDED = new Map<string, GpuProfile>()
/** A person types the names: more are a mistake. */
const ADDED_MAX = 1_000

/** From here on the name stands for this profile, as the names of the catalogue do. For commands, before they run. */
export function addGpuProfile(name: string, profile: GpuProfile): void {
  if (!ADDED.has(name) && ADDED.size >= ADDED_MAX) throw new Error('too many profiles beside the catalogue')
  ADDED.set(name, profile)
}

/** By name, with the share of a GPU that may stand behind it: `a100-llama-8b`, `h200-llama-1b+mig-2g`. */
export function findGpuProfile(name: string): GpuProfile | undefined {
  const [base = '', ...shares] = name.split('+')
  let profile = PROFILES.get(base) ?? ADDED.get(base)
  for (const share of shares) profile = profile && shareProfile(profile, share)
  return profile
}

export function gpuProfileNames(): readonly string[] {
  return [...PROFILES.keys()]
}
