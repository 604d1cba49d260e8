import { ConfigError } from '../config/config-error.ts'
import type { Config } from '../config/schema.ts'
import { checkTogether } from '../config/with-registry.ts'
import type { AdminReason, AdminRefusal, AdminReload, AdminReloadAnswer } from '../gateway/fleet-admin.ts'
import { combineSources } from './combine-sources.ts'
import { describeReload } from './describe-reload.ts'
import type { OneAtATime } from './one-at-a-time.ts'
import { restartNeeded, withoutRestart } from './restart-settings.ts'
import { countChanges } from './settings-change.ts'
import type { SettingsChanger } from './settings-changer.ts'
import type { WantedOwner } from './wanted.ts'

/**
 * Reads the configuration file again while requests run: the whole file takes effect, or nothing changes.
 *
 *   load ─▶ together with the registry, does it make sense? ─▶ could it run here? ─▶ carried out in one instant
 *
 * A file that cannot be loaded, that contradicts the registry, or that would change what a running pool is, is refused
 * with all reasons. The answer to a good file says what changed and which of its settings wait for a restart.
 */
export interface ReloadParts {
  readonly owner: WantedOwner
  readonly changer: SettingsChanger
  readonly queue: OneAtATime
  readonly complain: (problem: string) => void
  /** Called after a reload, with what changed. */
  readonly onReloaded: (summary: string, reason: AdminReason) => void
}

export function reloadSettings(
  parts: ReloadParts,
  load: () => Config,
  reason: AdminReason,
): Promise<AdminReloadAnswer> {
  return parts.queue.run(() => reload(parts, load, reason))
}

async function reload(parts: ReloadParts, load: () => Config, reason: AdminReason): Promise<AdminReloadAnswer> {
  const { owner, changer } = parts
  const loaded = tryLoad(load)
  if (loaded instanceof ConfigError) return refused('invalid-configuration', loaded.problems)
  const { file: present, entries } = owner.current
  const file = withoutRestart(present, loaded)
  const contradictions = checkTogether(file, entries)
  if (contradictions.length > 0) {
    const told = contradictions.map(({ kind, name, param, text }) => `${kind} ${name}: ${param} ${text}.`)
    return refused('contradicts-registry', told)
  }
  const { wanted, problems } = combineSources(file, entries)
  if (problems.length > 0) return refused('invalid-configuration', problems.map(sentenceOf))
  const planned = await changer.plan(wanted)
  if (planned.kind === 'refused') {
    const [first] = planned.refusals
    return refused(first?.code ?? 'pool-is-running', planned.refusals.map(sentenceOf))
  }
  for (const problem of changer.carryOut(planned.changes, wanted, reason)) parts.complain(problem)
  const result: AdminReload = {
    changed: countChanges(planned.changes),
    needsRestart: restartNeeded(present, loaded),
  }
  parts.onReloaded(describeReload(result), reason)
  return { kind: 'reloaded', reload: result }
}

function tryLoad(load: () => Config): Config | ConfigError {
  try {
    return load()
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
}

function refused(code: AdminRefusal['code'], problems: readonly string[]): AdminReloadAnswer {
  return {
    kind: 'refused',
    refusal: { code, because: `Nothing was changed. ${problems.join(' ')}`, param: null },
  }
}

const sentenceOf = ({ because }: AdminRefusal): string =>
  `${because.charAt(0).toUpperCase()}${because.slice(1)}${/[.?!]$/.test(because) ? '' : '.'}`
