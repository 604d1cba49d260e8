import type { GpuProfile, RooflineCoefficients, StepCoefficients } from './gpu-profile.ts'

/**
 * A replica on a part of a GPU.
 *
 * **MIG** cuts the chip: seven compute slices, eight memory slices (NVIDIA's MIG user guide, supported profiles), each
 * slice for one replica alone. What streams memory slows down with the memory share, what computes with the compute
 * share; launching kernels and one sequence's serial attention do not care. Memory and price shrink with it.
 *
 * **Time slicing** lets replicas take turns on the whole chip. Nobody is isolated: while the neighbours are busy a step
 * waits for their turns, and switching costs. With n replicas and neighbours busy the share u of the time a step takes
 * 1 + (n − 1)·u turns, each longer by the switching overhead. Memory is split evenly.
 *
 * Written behind a profile's name: `h200-llama-1b+mig-2g`, `a100-llama-8b+shared-2`.
 *
 * Example: `h200-llama-1b+mig-1g` has an eighth of the bandwidth, so its 1.06 ms of weights become 8.5 ms.
 */
export interface MigSlice {
  readonly computeRatio: number
  readonly memoryRatio: number
}

export const MIG_SLICES: Readonly<Record<string, MigSlice>> = {
  '1g': { computeRatio: 1 / 7, memoryRatio: 1 / 8 },
  '2g': { computeRatio: 2 / 7, memoryRatio: 2 / 8 },
  '3g': { computeRatio: 3 / 7, memoryRatio: 4 / 8 },
  '4g': { computeRatio: 4 / 7, memoryRatio: 4 / 8 },
  '7g': { computeRatio: 1, memoryRatio: 1 },
}

export interface TimeSlicing {
  readonly replicas: number
  /** Share of the time in which each neighbour wants the chip too. */
  readonly neighboursBusyRatio: number
  /** What switching adds to a turn: caches are cold and a context is loaded. */
  readonly switchRatio: number
}

/**
 * Neighbours always busy is the case to plan for. Switching: NVIDIA measured 0.76 of MIG's throughput for two models in
 * turns on one A100 (voice pipeline, 2026), so a turn is about 1.3 times as long as the work in it.
 */
const BUSY_NEIGHBOURS = { neighboursBusyRatio: 1, switchRatio: 0.3 }

export function sliceProfile(profile: GpuProfile, name: string): GpuProfile | undefined {
  const slice = MIG_SLICES[name]
  // Tensor parallelism spans whole GPUs.
  if (slice === undefined || profile.gpuCount > 1) return undefined
  return {
    ...withMemoryShare(profile, slice.memoryRatio),
    name: `${profile.name}+mig-${name}`,
    coefficients: sliced(profile.coefficients, slice),
    usdPerHour: profile.usdPerHour * slice.computeRatio,
    source: `${profile.source}; scaled to a MIG slice`,
    ...(profile.serving !== undefined && { serving: slicedTerms(profile.serving, slice) }),
  }
}

export function timeSliceProfile(profile: GpuProfile, slicing: TimeSlicing): GpuProfile {
  const { replicas, neighboursBusyRatio, switchRatio } = slicing
  const waits = (replicas - 1) * neighboursBusyRatio
  const slowdown = waits > 0 ? (1 + waits) * (1 + switchRatio) : 1
  return {
    ...withMemoryShare(profile, 1 / replicas),
    name: `${profile.name}+shared-${replicas}`,
    coefficients: slowed(profile.coefficients, slowdown),
    usdPerHour: profile.usdPerHour / replicas,
    source: `${profile.source}; time-sliced`,
    ...(profile.serving !== undefined && { serving: scaledTerms(profile.serving, slowdown) }),
  }
}

/** Applies what stands behind a `+`; undefined when it is not known or does not apply. */
export function shareProfile(profile: GpuProfile, share: string): GpuProfile | undefined {
  const [kind, value = ''] = share.split('-')
  if (kind === 'mig') return sliceProfile(profile, value)
  const replicas = Number(value)
  if (kind !== 'shared' || !Number.isInteger(replicas) || replicas < 1) return undefined
  return timeSliceProfile(profile, { replicas, ...BUSY_NEIGHBOURS })
}

function withMemoryShare(profile: GpuProfile, ratio: number): GpuProfile {
  const { memory } = profile
  return {
    ...profile,
    memory: { ...memory, gpuBytes: memory.gpuBytes * ratio, overheadBytes: memory.overheadBytes * ratio },
  }
}

function sliced(c: StepCoefficients, slice: MigSlice): StepCoefficients {
  if (c.kind === 'reference') return slowed(c, 1 / slice.computeRatio)
  return { ...c, ...slicedTerms(c, slice) }
}

const MEMORY_TERMS = ['weightsUs', 'lmHeadUs', 'kvReadUsPerToken'] as const
const COMPUTE_TERMS = [
  'computeUsPerToken',
  'decodeUsPerSequence',
  'attentionUsPerPair',
  'contextAttentionUsPerPair',
] as const

/** Terms that are there, each by the share that it depends on; the others belong to the host. */
function slicedTerms(terms: NonNullable<GpuProfile['serving']>, slice: MigSlice): typeof terms {
  const divided = (names: readonly (keyof typeof terms)[], ratio: number): [string, number][] =>
    names.flatMap((name) => (terms[name] === undefined ? [] : [[name, terms[name] / ratio]]))
  return {
    ...terms,
    ...Object.fromEntries([...divided(MEMORY_TERMS, slice.memoryRatio), ...divided(COMPUTE_TERMS, slice.computeRatio)]),
  }
}

/** The same chip, every step of it slower. */
export function slowed(c: StepCoefficients, slowdown: number): StepCoefficients {
  if (c.kind === 'reference') {
    const { prefillTokensPerSecond, decodeTokensPerSecond } = c
    return {
      ...c,
      prefillTokensPerSecond: prefillTokensPerSecond / slowdown,
      decodeTokensPerSecond: decodeTokensPerSecond / slowdown,
    }
  }
  return { ...c, ...scaledTerms(c, slowdown) }
}

/** Every duration, longer; how sharp a knee is is not one. */
function scaledTerms(terms: NonNullable<GpuProfile['serving']>, factor: number): typeof terms {
  const scaled = Object.entries(terms)
    .filter(([name, value]) => !name.endsWith('Sharpness') && typeof value === 'number')
    .map(([name, value]) => [name, (value as number) * factor])
  return { ...terms, ...(Object.fromEntries(scaled) as Partial<RooflineCoefficients>) }
}
