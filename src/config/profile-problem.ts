import { kvBlockCount } from '../engine/gpu-profile.ts'
import { findGpuProfile, gpuProfileNames } from '../engine/gpu-profiles.ts'
import { MIG_SLICES } from '../engine/gpu-share.ts'
import { nearest } from './nearest.ts'

/**
 * Why no engine can run with this profile of the catalogue; undefined when one can. The name may end with a share of the
 * GPU: `h100-llama-8b+mig-2g`. A name that ends in `.json` is a file, which is read when an engine is made. The text
 * follows the place of the name, as in "backend.profile is …".
 */
export function profileProblem(name: string): string | undefined {
  if (isProfileFile(name)) return undefined
  const profile = findGpuProfile(name)
  if (profile === undefined) return unknownText(name)
  if (kvBlockCount(profile.memory) > 0) return undefined
  return `is "${name}", whose memory is full with the weights: none is left for keys and values. Choose a larger part or GPU`
}

/** A profile that `spillway engine fit` or `spillway engine learned` wrote. */
export const isProfileFile = (name: string): boolean => name.endsWith('.json')

function unknownText(name: string): string {
  const [base = '', ...shares] = name.split('+')
  const shareText = `+${Object.keys(MIG_SLICES)
    .map((slice) => `mig-${slice}`)
    .join(', +')}, or +shared-2 and more`
  if (shares.length > 0 && findGpuProfile(base) !== undefined) {
    const isWide = (findGpuProfile(base)?.gpuCount ?? 1) > 1
    if (isWide && shares.some((share) => share.startsWith('mig-')))
      return `is "${name}", but ${base} spans several GPUs, which have no slices. Remove "+${shares.join('+')}"`
    return `is "${name}", but there is no such part of a GPU. Known: ${shareText}`
  }
  const names = gpuProfileNames()
  const guess = nearest(base, names)
  const advice =
    guess === undefined
      ? `Known: ${names.join(', ')}; for a part of a GPU add ${shareText}`
      : `Did you mean "${[guess, ...shares].join('+')}"?`
  return `is "${name}", but there is no such GPU profile. ${advice}`
}
