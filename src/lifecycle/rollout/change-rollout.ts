import {
  ModelRollout,
  type ModelRolloutChange,
  type ModelRolloutMemory,
  type RolloutCommand,
  type RolloutView,
} from '../../policy/rollout/model-rollout.ts'
import { ROLLOUT_DEFAULTS } from '../../policy/rollout/rollout.ts'
import type { Platform } from '../platform.ts'
import { isHealthy } from './pick-release.ts'

/**
 * A rollout goes on, back or is held: by the judge every tick, or by hand. Every change is in the journal with who, why
 * and the judge's numbers.
 */
export type RolloutChanged =
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
export function changeRollout(platform: Platform, { model, command, by, because }: HandChange): RolloutChanged {
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
  journalRolloutChange(platform, change)
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

const refused = (code: Extract<RolloutChanged, { kind: 'refused' }>['code'], because: string): RolloutChanged => ({
  kind: 'refused',
  code,
  because,
})

/** When the platform starts: the canaries that the configuration names. */
export function beginRollouts(platform: Platform): void {
  for (const rollout of platform.policies.rollouts.values()) {
    const change = rollout.begin(platform.world.clock.now())
    if (change !== undefined) journalRolloutChange(platform, change)
  }
}

/** Every tick. */
export function tickRollouts(platform: Platform): void {
  for (const rollout of platform.policies.rollouts.values()) {
    const change = rollout.tick(platform.world.clock.now())
    if (change !== undefined) journalRolloutChange(platform, change)
  }
}

export function journalRolloutChange(platform: Platform, change: ModelRolloutChange): void {
  const { kind, at, model, stable, canary, step, canaryRatio, by, because, verdict } = change
  platform.world.journal.record({
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
