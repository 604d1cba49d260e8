/** The same scenario with some paths set otherwise: `workload.3.arrivals.ratePerS` → 15. Nothing is shared with the original. */
export function withPaths(tree: unknown, paths: Readonly<Record<string, unknown>>): unknown {
  const copy = structuredClone(tree)
  for (const [path, value] of Object.entries(paths)) setPath(copy, path.split('.'), value, path)
  return copy
}

function setPath(node: unknown, steps: readonly string[], value: unknown, path: string): void {
  let at = node
  for (const step of steps.slice(0, -1)) {
    if (typeof at !== 'object' || at === null) throw new PathError(path)
    const holder = at as Record<string, unknown>
    holder[step] ??= {}
    at = holder[step]
  }
  const last = steps.at(-1)
  if (typeof at !== 'object' || at === null || last === undefined) throw new PathError(path)
  ;(at as Record<string, unknown>)[last] = value
}

export class PathError extends Error {
  override readonly name = 'PathError'

  constructor(path: string) {
    super(`nothing can be set at ${path}`)
  }
}
