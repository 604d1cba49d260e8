/** A broken assertion is a programming error, never a user's mistake; its message names the invariant. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError'
}

export function assert(condition: boolean, invariant: string): asserts condition {
  if (!condition) throw new AssertionError(invariant)
}

/** Closes a discriminated union: the compiler proves that no case is left. */
export function unreachable(value: never): never {
  throw new AssertionError(`unreachable case: ${JSON.stringify(value)}`)
}
