import { upstreamKeyProblems } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import type { RegistryEntry } from '../domain/registry.ts'
import type { AdminRefusal } from '../gateway/fleet-admin.ts'
import { type Wanted, wantedOf } from './wanted.ts'

/**
 * Combines the file and the registry, with the upstream keys of the registry's pools from the environment. Pools of the
 * file got their keys when the file was loaded, and keep them until the file is loaded again.
 */
export function combineSources(
  file: Config,
  entries: readonly RegistryEntry[],
): { readonly wanted: Wanted; readonly problems: readonly AdminRefusal[] } {
  const problems: AdminRefusal[] = []
  const wanted = wantedOf(file, entries, (settings) => {
    const resolved = upstreamKeyProblems(settings)
    const isOfFile = (i: number): boolean => i < file.pools.length
    for (const { path, text } of resolved.problems) {
      if (path[0] !== 'pools' || isOfFile(Number(path[1]))) continue
      const pool = settings.pools[Number(path[1])]
      const because = `pool ${pool?.id ?? ''}: ${path.slice(2).join('.')} ${text}`
      problems.push({ code: 'invalid-value', because, param: `pool.${path.slice(2).join('.')}` })
    }
    const pools = settings.pools.map((pool, i) => (isOfFile(i) ? pool : (resolved.settings.pools[i] ?? pool)))
    return { ...settings, pools }
  })
  return { wanted, problems }
}
