import type { Entry } from '../domain/entry.ts'
import { releaseIdOf } from '../domain/fleet.ts'
import type { RegistryBody, RegistryEntry } from '../domain/registry.ts'
import type { AdminAnswer, AdminCommand, AdminReason, AdminRollout } from '../gateway/fleet-admin.ts'
import type { Platform } from '../lifecycle/platform.ts'
import { changeRollout, recallRollout } from '../lifecycle/rollout/change-rollout.ts'
import type { ModelRolloutMemory, RolloutCommand } from '../policy/rollout/model-rollout.ts'
import type { LiveRegistry } from './live-registry.ts'

/**
 * Rollouts by hand, and over restarts: how far each has got is kept in the registry with every change, the judge's too,
 * so that a release that was rolled back stays so, and what could be undone still can.
 *
 * The start of a canary that the configuration names is not written: it would be started again anyway, and a gateway
 * that only has a file opens no database for it.
 */
export class LiveRollouts {
  readonly #platform: Platform
  readonly #registry: LiveRegistry

  constructor(platform: Platform, registry: LiveRegistry) {
    this.#platform = platform
    this.#registry = registry
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
    return this.#keep(model, { by, because })
  }

  /** What the judge or drift changed by themselves. */
  take(entry: Entry): void {
    if (entry.kind !== 'rollout-changed' || (entry.by !== 'judge' && entry.by !== 'drift')) return
    void this.#keep(entry.model, { by: entry.by, because: entry.because }).catch(() => {})
  }

  recall(entries: readonly RegistryEntry[]): void {
    for (const { kind, name, body } of entries) {
      const isMemory = kind === 'rollout' && typeof body['canary'] === 'string' && typeof body['stable'] === 'string'
      if (!isMemory || JSON.stringify(this.#memory(name)) === JSON.stringify(body)) continue
      recallRollout(this.#platform, name, body as unknown as ModelRolloutMemory)
    }
  }

  #memory(model: string): ModelRolloutMemory | undefined {
    return this.#platform.policies.rollouts.get(model)?.memory()
  }

  #keep(model: string, reason: AdminReason): Promise<AdminAnswer> {
    const memory = this.#memory(model)
    if (memory === undefined) return Promise.resolve({ kind: 'changed', revision: undefined })
    return this.#registry.edit([{ kind: 'rollout', name: model, body: memory as unknown as RegistryBody }], reason)
  }
}

function commandOf(model: string, { kind, release }: AdminCommand): RolloutCommand | undefined {
  if (kind !== 'start') return { kind }
  if (release === undefined) return undefined
  return { kind, canary: release.includes('@') ? release : releaseIdOf(model, release) }
}
