import fc from 'fast-check'

/** A seed for each part of a property that is split into several tests (`property-seed.ts` has the one that all share). */
export const nthSeed = (nth: number): number => (fc.readConfigureGlobal()?.seed ?? 0) + nth
