import { isDeepStrictEqual } from 'node:util'
import { releaseIdOf } from '../domain/fleet.ts'
import type { RegistryEntry } from '../domain/registry.ts'
import type { AdminAnswer, AdminCommand, AdminReason, AdminRollout } from '../gateway/fleet-admin.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { changeRollout, followRollout, resetRollout } from '../lifecycle/rollout/change-rollout.ts'
import type { ModelRolloutMemory, RolloutCommand } from '../policy/rollout/model-rollout.ts'
import type { RegistryRead } from './live-registry.ts'
import type { RegistryRolloutKeeper } from './registry-rollout-keeper.ts'

/** Commands of administrators to rollouts, and the rollouts' memories that the registry holds. */
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

  /** Carries out a command at once; answers after the first try to write it to the registry. */
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
   * Takes over the memories that the registry holds. A rollout that this process has changed and not written yet keeps
   * its own state, which is newer. The exception is the first read: this process had to start without the store, and the
   * store knows more, unless this process itself has rolled back the same canary. What the platform decided on a state
   * that somebody has changed meanwhile does not hold: a person's change outlasts the judge's.
   */
  recall({ entries, before, isFirst }: RegistryRead): void {
    const bodies = new Map(before.flatMap(({ kind, name, body }) => (kind === 'rollout' ? [[name, body]] : [])))
    for (const { kind, name, body } of entries) {
      const isMemory = kind === 'rollout' && typeof body['canary'] === 'string' && typeof body['stable'] === 'string'
      if (!isMemory) continue
      const memory = body as unknown as ModelRolloutMemory
      const pending = this.#keeper.pendingOf(name)
      if (pending !== undefined) {
        const isOwnVerdict = pending.state.phase === 'rolled-back' && pending.canary === memory.canary
        const isNews = !isDeepStrictEqual(bodies.get(name), body)
        const isOutdated = !isFirst && isNews && this.#keeper.isPendingAutomatic(name)
        if (!isOutdated && (!isFirst || isOwnVerdict)) continue
        this.#keeper.forget(name)
      }
      const own = this.#platform.policies.rollouts.get(name)?.memory()
      if (!isDeepStrictEqual(own, memory)) followRollout(this.#platform, name, memory)
    }
  }

  /** What was decided here does not hold: back to what the registry says, or to the beginning. */
  overruled(model: string, entries: readonly RegistryEntry[]): void {
    const entry = entries.find(({ kind, name }) => kind === 'rollout' && name === model)
    if (entry === undefined) resetRollout(this.#platform, model)
    else followRollout(this.#platform, model, entry.body as unknown as ModelRolloutMemory)
  }
}

function commandOf(model: string, { kind, release }: AdminCommand): RolloutCommand | undefined {
  if (kind !== 'start') return { kind }
  if (release === undefined) return undefined
  return { kind, canary: release.includes('@') ? release : releaseIdOf(model, release) }
}
