import { isDeepStrictEqual } from 'node:util'
import type { Config } from '../config/schema.ts'

/**
 * Settings that need a restart: a closed list of paths, each with its reason. Every other setting takes effect with a
 * reload. A changed setting of this list stays as it was, and the reload reports it.
 */
export const RESTART_SETTINGS = {
  server: 'its listeners and their limits are open',
  seed: 'its random streams have begun',
  queue: 'its lanes are laid out and hold requests',
  fairness: 'its lanes are laid out and hold requests',
  'admission.returnShare': 'slots have been given by it',
  'admission.safetyMargin': 'the learned margin began from it',
  routing: 'what was learned of replicas was learned with its weights',
  'regions.local': 'its pools are near or far by it',
  'regions.spillMarginMs': 'requests are being sent by it',
  'regions.returnMs': 'requests are being sent by it',
  ladder: 'its rungs are in use',
  cost: 'seconds that are not closed yet are shared by it',
  store: 'its database is open',
  sharing: 'its slices are out, and others count on its times',
  ledger: 'its spool is open',
  audit: 'its chain is open',
  alerts: 'its receiver is being told',
  jobs: 'its files are open',
  offline: 'replicas were given their rooms with it',
  retrieval: 'its embedder and caches are open',
  oidc: 'the keys of its issuers are being read',
  engine: 'simulated engines run with it',
  logging: 'its log is open',
  record: 'its file is open',
  telemetry: 'its collector is being told',
  console: 'its routes are made',
} as const

/** The changed settings that need a restart, as `server.port`. */
export function restartNeeded(present: Config, next: Config): string[] {
  return Object.keys(RESTART_SETTINGS).flatMap((path) => differingLeaves(at(present, path), at(next, path), path))
}

/** The next settings, with every setting that needs a restart as it is at present. */
export function withoutRestart(present: Config, next: Config): Config {
  const settings = structuredClone(next) as unknown as Record<string, unknown>
  for (const path of Object.keys(RESTART_SETTINGS)) put(settings, path.split('.'), at(present, path))
  return settings as unknown as Config
}

function differingLeaves(before: unknown, after: unknown, path: string): string[] {
  if (isDeepStrictEqual(before, after)) return []
  if (!isSection(before) || !isSection(after)) return [path]
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].flatMap((key) => differingLeaves(before[key], after[key], `${path}.${key}`))
}

const isSection = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const at = (config: Config, path: string): unknown =>
  path.split('.').reduce<unknown>((value, key) => (isSection(value) ? value[key] : undefined), config)

/** Sets a value by its path, or removes the setting when the value is undefined. */
function put(tree: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const last = path[path.length - 1] as string
  const section = path.slice(0, -1).reduce((node, key) => node[key] as Record<string, unknown>, tree)
  if (value === undefined) delete section[last]
  else section[last] = value
}
