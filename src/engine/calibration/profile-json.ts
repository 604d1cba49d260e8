import {
  ASSUMED_SERVING,
  BLOCK_TOKENS,
  type GpuProfile,
  type MemoryShape,
  type RooflineCoefficients,
} from '../gpu-profile.ts'
import { findGpuProfile } from '../gpu-profiles.ts'
import type { ProfileFit } from './fit-profile.ts'
import type { ServingFit } from './fit-serving.ts'

/**
 * A profile as a file: what `engine fit` and `engine learned` write and `engine --profile FILE.json` reads. Memory, price
 * and number of GPUs are those of a profile in the catalogue that it is `like`; step times are its own, and so is the
 * memory for keys and values where `kvTokensMax` says it.
 */
export interface ProfileJson {
  readonly name: string
  readonly like: string
  readonly source: string
  readonly coefficients: RooflineCoefficients
  readonly serving?: GpuProfile['serving']
  /** Tokens whose keys and values fit. */
  readonly kvTokensMax?: number
}

export interface BadProfile {
  readonly kind: 'bad-profile'
  readonly because: string
}

export interface ProfileNames {
  readonly name: string
  readonly like: string
}

/** Steps timed alone say nothing of the host, so that the profile has what the catalogue assumes. */
export function profileJsonOf(fit: ProfileFit, names: ProfileNames): ProfileJson {
  const source = `fitted to ${fit.errors.count} measured steps; host time assumed`
  return { ...names, source, coefficients: fit.coefficients, serving: ASSUMED_SERVING }
}

export function servedProfileJsonOf(fit: ServingFit, kernels: RooflineCoefficients, names: ProfileNames): ProfileJson {
  const source = `fitted to ${fit.errors.count} steps of an engine at work`
  return { ...names, source, coefficients: kernels, serving: fit.terms }
}

const TERMS = Object.keys((findGpuProfile('h200-llama-8b') as GpuProfile).coefficients).filter(
  (term) => term !== 'kind',
)

export function parseProfile(json: string): GpuProfile | BadProfile {
  let value: Partial<ProfileJson>
  try {
    value = JSON.parse(json) as Partial<ProfileJson>
  } catch (error) {
    return bad(`expected JSON: ${(error as Error).message}`)
  }
  if (typeof value !== 'object' || value === null) return bad('expected an object')
  const { name, like, source = 'a file', coefficients, serving, kvTokensMax } = value
  if (typeof name !== 'string' || typeof like !== 'string') return bad('expected the texts "name" and "like"')
  const base = findGpuProfile(like)
  if (base === undefined) return bad(`"like" names no profile: ${like}`)
  const problem = problemOf('coefficients', coefficients, TERMS) ?? problemOf('serving', serving ?? {}, [])
  if (problem !== undefined) return bad(problem)
  if (kvTokensMax !== undefined && !(Number.isFinite(kvTokensMax) && kvTokensMax >= BLOCK_TOKENS))
    return bad(`"kvTokensMax" is not a number of at least ${BLOCK_TOKENS}`)
  const { serving: _, memory, ...shape } = base
  return {
    ...shape,
    memory: kvTokensMax === undefined ? memory : withRoomFor(memory, kvTokensMax),
    name,
    source,
    coefficients: { ...(coefficients as RooflineCoefficients), kind: 'roofline' },
    ...(serving !== undefined && { serving }),
  }
}

/** The same GPU with as much memory as leaves room for these tokens. */
function withRoomFor(memory: MemoryShape, kvTokens: number): MemoryShape {
  const kvBytes = Math.floor(kvTokens / BLOCK_TOKENS) * BLOCK_TOKENS * memory.kvBytesPerToken
  // One byte more, lest the division by `usableRatio` loses the last block.
  return { ...memory, gpuBytes: (kvBytes + 1 + memory.weightBytes + memory.overheadBytes) / memory.usableRatio }
}

function problemOf(what: string, terms: unknown, required: readonly string[]): string | undefined {
  if (typeof terms !== 'object' || terms === null) return `expected an object "${what}"`
  for (const term of required) if (!(term in terms)) return `${what} lacks ${term}`
  for (const [term, value] of Object.entries(terms)) {
    if (term === 'kind') continue
    if (!TERMS.includes(term)) return `${what} has an unknown term ${term}`
    if (typeof value !== 'number' || !(value >= 0)) return `${what}.${term} is not a number of at least 0`
  }
  return undefined
}

function bad(because: string): BadProfile {
  return { kind: 'bad-profile', because }
}
