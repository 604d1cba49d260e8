/**
 * The same scenario with some paths set otherwise: `workload.3.arrivals.ratePerS` → 15, `platform.pools.*.limit` → that
 * of every pool. Nothing is shared with the original.
 */
export function withPaths(tree: unknown, paths: Readonly<Record<string, unknown>>): unknown {
  const copy = structuredClone(tree)
  for (const [path, value] of Object.entries(paths)) setPath(copy, path.split('.'), value, path)
  return copy
}

function setPath(node: unknown, steps: readonly string[], value: unknown, path: string): void {
  const [step, ...rest] = steps
  if (typeof node !== 'object' || node === null || step === undefined) throw new PathError(path)
  const holder = node as Record<string, unknown>
  for (const name of step === '*' ? Object.keys(holder) : [step]) {
    // One item may be appended; a hole in a list would be reported as another error.
    if (Array.isArray(node) && !(Number.isInteger(Number(name)) && Number(name) <= node.length)) {
      throw new PathError(path, `: it is a list of ${node.length}, counted from 0, and has no ${name}`)
    }
    if (rest.length > 0) {
      holder[name] ??= {}
      setPath(holder[name], rest, value, path)
    } else holder[name] = structuredClone(value)
  }
}

export class PathError extends Error {
  override readonly name = 'PathError'

  constructor(path: string, because = '') {
    super(`nothing can be set at ${path}${because}`)
  }
}
