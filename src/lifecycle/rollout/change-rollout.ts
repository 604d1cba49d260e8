import {
  type Judging,
  ModelRollout,
  type ModelRolloutChange,
  type ModelRolloutMemory,
  type RolloutCommand,
  type RolloutSettings,
  type RolloutView,
} from '../../policy/rollout/model-rollout.ts'
import { ROLLOUT_DEFAULTS } from '../../policy/rollout/rollout.ts'
import type { Platform } from '../platform.ts'
import { isHealthy } from './pick-release.ts'

/**
 * A rollout goes on, back or is held: by the judge every tick, or by hand. Every change is in the journal with who, why
 * and the judge's numbers, and is kept through the port `RolloutKeeper`, so that a restart goes on from there.
 *
 * Of several gateways one decides (`Leadership`); the others tell it what they have seen, and follow. Where nobody is known
 * to lead, each still takes back a canary that its own attempts show to be worse, and nothing else.
 *
 * The start of a canary that the configuration names is not kept: the next process starts it again anyway, and a gateway
 * that only has a file opens no database for it.
 */
export type HandChangeResult =
  | { readonly kind: 'changed'; readonly view: RolloutView }
  | {
      readonly kind: 'refused'
      readonly code: 'no-such-model' | 'no-such-release' | 'nothing-to-change'
      readonly because: string
    }

export interface HandChange {
  readonly model: string
  readonly command: RolloutCommand
  /** Who: a key's id. */
  readonly by: string
  readonly because: string
}

/** By hand: start, pause, resume, promote, roll back, undo. */
export function changeRollout(platform: Platform, { model, command, by, because }: HandChange): HandChangeResult {
  const { policies, world } = platform
  const known = policies.models.get(model)
  if (known === undefined) return refused('no-such-model', `no model is called ${model}`)
  if (command.kind === 'start') {
    const { canary } = command
    if (!known.releases.includes(canary)) return refused('no-such-release', `${model} has no release ${canary}`)
    if (!isHealthy(policies, canary)) return refused('nothing-to-change', `${canary} has no healthy replica`)
  }
  const rollout = policies.rollouts.get(model) ?? plainRollout(model, known.releases[0] ?? '')
  const change = rollout.command(world.clock.now(), command, by, because)
  if (change === undefined) return refused('nothing-to-change', whyNothing(rollout.view(), command))
  policies.rollouts.set(model, rollout)
  recordRolloutChange(platform, change)
  return { kind: 'changed', view: rollout.view() }
}

/** Goes on where another process was. Releases that are gone meanwhile are not brought back. */
export function recallRollout(platform: Platform, model: string, memory: ModelRolloutMemory): boolean {
  const { policies } = platform
  const releases = policies.models.get(model)?.releases ?? []
  if (!releases.includes(memory.stable) || !releases.includes(memory.canary)) return false
  const rollout = policies.rollouts.get(model) ?? plainRollout(model, releases[0] ?? '')
  if (!rollout.recall(memory)) return false
  policies.rollouts.set(model, rollout)
  return true
}

/** Goes on where another gateway is, and says so. */
export function followRollout(platform: Platform, model: string, memory: ModelRolloutMemory): boolean {
  const isTaken = recallRollout(platform, model, memory)
  if (isTaken) tellFollowed(platform, model)
  return isTaken
}

function tellFollowed({ policies, world }: Platform, model: string): void {
  const { stable, canary, canaryRatio } = policies.rollouts.get(model)?.view() ?? {}
  if (stable === undefined || canary === undefined || canaryRatio === undefined) return
  const percent = canaryRatio * 100
  world.journal.record({ kind: 'rollout-followed', at: world.clock.now(), model, from: stable, to: canary, percent })
}

/** What was decided here does not hold, and nothing was written before it: the rollout is as the settings say. */
export function resetRollout(platform: Platform, model: string): void {
  const { policies, world } = platform
  const settings = policies.rollouts.get(model)?.settings
  if (settings === undefined) return
  const rollout = new ModelRollout(settings)
  policies.rollouts.set(model, rollout)
  rollout.begin(world.clock.now())
  tellFollowed(platform, model)
}

/**
 * The settings say this of a model's rollout from now on. What was reached goes on, as after a restart, while the
 * settings name the same canary; where they name none, only what was started by hand or changed since (`isKept`) does.
 */
export function putRollout(platform: Platform, settings: RolloutSettings, isKept: boolean): void {
  const { policies, world } = platform
  const { model, canary } = settings
  const memory = policies.rollouts.get(model)?.memory()
  const rollout = new ModelRollout(settings)
  policies.rollouts.set(model, rollout)
  if (memory !== undefined && (isKept || canary === memory.canary)) recallRollout(platform, model, memory)
  const change = rollout.begin(world.clock.now())
  if (change !== undefined) recordRolloutChange(platform, change)
}

/** The settings say nothing of a model's rollout any more. What was started by hand or changed since goes on. */
export function dropRollout(platform: Platform, model: string, isKept: boolean): void {
  const { policies } = platform
  const memory = policies.rollouts.get(model)?.memory()
  policies.rollouts.delete(model)
  if (isKept && memory !== undefined) recallRollout(platform, model, memory)
}

/** Of a model whose configuration says nothing of rollouts. */
function plainRollout(model: string, stable: string): ModelRollout {
  const { steps, dwellUs } = ROLLOUT_DEFAULTS
  return new ModelRollout({
    model,
    stable,
    canary: undefined,
    stickyBy: 'session',
    steps,
    dwellUs,
    pins: [],
    judge: {},
  })
}

function whyNothing({ phase, canary, isHeld }: RolloutView, { kind }: RolloutCommand): string {
  if (kind === 'start') return `${canary ?? 'that release'} is being tried or serves already`
  if (phase === 'none') return 'no release is being tried'
  if (kind === 'pause' || kind === 'resume') return isHeld ? 'it is paused already' : 'it is not paused'
  return kind === 'undo' ? 'there is nothing to undo' : `it is ${phase} already`
}

const refused = (code: Extract<HandChangeResult, { kind: 'refused' }>['code'], because: string): HandChangeResult => ({
  kind: 'refused',
  code,
  because,
})

/** When the platform starts: the canaries that the configuration names. */
export function beginRollouts(platform: Platform): void {
  for (const rollout of platform.policies.rollouts.values()) {
    const change = rollout.begin(platform.world.clock.now())
    if (change !== undefined) recordRolloutChange(platform, change)
  }
}

/** What may follow from evidence here: see `Judging`. */
export function judgingOf({ world }: Platform): Judging {
  const { kind } = world.leadership.role()
  return kind === 'leads' ? 'decide' : kind === 'follows' ? 'watch' : 'protect'
}

/** Every tick. */
export function tickRollouts(platform: Platform): void {
  const may = judgingOf(platform)
  for (const rollout of platform.policies.rollouts.values()) {
    const change = rollout.tick(platform.world.clock.now(), may)
    if (change !== undefined) recordRolloutChange(platform, change)
  }
}

/** Decided by the platform, and not by a person. */
export const isAutomatic = (by: string): boolean => by === 'judge' || by === 'drift'

/** In the journal, for those who watch, and with the keeper, for the next process. */
export function recordRolloutChange({ world, policies }: Platform, change: ModelRolloutChange): void {
  const { kind, at, model, stable, canary, step, canaryRatio, by, because, verdict } = change
  const memory = policies.rollouts.get(model)?.memory()
  const role = world.leadership.role()
  const fence = isAutomatic(by) && role.kind === 'leads' ? role.fence : undefined
  if (by !== 'config' && memory !== undefined) world.rolloutKeeper.keep(model, memory, { by, because, fence })
  world.journal.record({
    kind: 'rollout-changed',
    at,
    model,
    change: kind,
    from: stable,
    to: canary,
    step,
    percent: canaryRatio * 100,
    by,
    because,
    ...(verdict !== undefined && { evidence: verdict.evidence }),
  })
}
