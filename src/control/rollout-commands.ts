import { releaseIdOf } from '../domain/fleet.ts'
import type { RegistryEntry } from '../domain/registry.ts'
import type { AdminAnswer, AdminCommand, AdminReason, AdminRollout } from '../gateway/fleet-admin.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { changeRollout, recallRollout } from '../lifecycle/rollout/change-rollout.ts'
import type { ModelRolloutMemory, RolloutCommand } from '../policy/rollout/model-rollout.ts'
import type { RegistryRolloutKeeper } from './registry-rollout-keeper.ts'

/** Rollouts by hand, and where they go on after a restart or after another gateway has changed them. */
export class RolloutCommands {
  readonly #platform: Platform
  readonly #keeper: RegistryRolloutKeeper

  constructor(platform: Platform, keeper: RegistryRolloutKeeper) {
    this.#platform = platform
    this.#keeper = keeper
  }

  list(): readonly AdminRollout[] {
    const { policies } = this.#platform
    return Array.from(policies.models.values(), (model): AdminRollout => {
      const view = policies.rollouts.get(model.name)?.view()
      return {
        model: model.name,
        stable: view?.stable ?? model.releases[0] ?? '',
        canary: view?.canary,
        phase: view?.phase ?? 'none',
        percent: 100 * (view?.canaryRatio ?? 0),
        isPaused: view?.isHeld ?? false,
        verdict: view?.verdict,
      }
    })
  }

  /** In force at once; answered when it was written, or with why it could not be yet. */
  async command(model: string, asked: AdminCommand, { by, because }: AdminReason): Promise<AdminAnswer> {
    const command = commandOf(model, asked)
    if (command === undefined) {
      const text = 'start needs a release: which one is to be tried?'
      return { kind: 'refused', refusal: { code: 'missing-required-parameter', because: text, param: 'release' } }
    }
    const answer = changeRollout(this.#platform, { model, command, by, because })
    if (answer.kind === 'refused') {
      return { kind: 'refused', refusal: { code: answer.code, because: answer.because, param: 'model' } }
    }
    return this.#keeper.whenTried(model)
  }

  /**
   * What the registry holds goes on here. Where this process has changed a rollout since and could not write it yet,
   * its own state is newer and stays; except that at the first read, of two processes one after the other, the store
   * knows more than a process that had to begin without it, unless that process has found the canary bad itself.
   */
  recall(entries: readonly RegistryEntry[], isFirst: boolean): void {
    for (const { kind, name, body } of entries) {
      const isMemory = kind === 'rollout' && typeof body['canary'] === 'string' && typeof body['stable'] === 'string'
      if (!isMemory) continue
      const memory = body as unknown as ModelRolloutMemory
      const pending = this.#keeper.pendingOf(name)
      if (pending !== undefined) {
        const isOwnVerdict = pending.state.phase === 'rolled-back' && pending.canary === memory.canary
        if (!isFirst || isOwnVerdict) continue
        this.#keeper.forget(name)
      }
      const own = this.#platform.policies.rollouts.get(name)?.memory()
      if (JSON.stringify(own) !== JSON.stringify(memory)) recallRollout(this.#platform, name, memory)
    }
  }
}

function commandOf(model: string, { kind, release }: AdminCommand): RolloutCommand | undefined {
  if (kind !== 'start') return { kind }
  if (release === undefined) return undefined
  return { kind, canary: release.includes('@') ? release : releaseIdOf(model, release) }
}
