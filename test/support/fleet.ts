import type { Model, Release } from '../../src/domain/fleet.ts'

/** A model's only release, for tests that are not about releases. */
export function makeRelease(model: Model, over: Partial<Release> = {}): Release {
  const { name, contextTokensMax, fallback, createdAtS } = model
  return { id: `${name}@1`, model: name, version: '1', contextTokensMax, fallback, createdAtS, ...over }
}
