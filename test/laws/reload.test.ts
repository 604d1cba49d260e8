import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { secondsToUs } from '../../src/base/clock.ts'
import type { Config } from '../../src/config/schema.ts'
import { withoutRestart } from '../../src/control/restart-settings.ts'
import { digestOf } from '../../src/gateway/authenticate.ts'
import type { LimitView } from '../../src/policy/limits/limit.ts'
import type { ModelRollout } from '../../src/policy/rollout/model-rollout.ts'
import { ControlledWorld } from '../support/controlled-world.ts'
import { configs, keyOf, TENANTS } from '../support/draw-config.ts'

/**
 * A reload from A to B behaves as a fresh start with B, for random pairs: everything that can be seen of the platform is
 * the same, and the same requests get the same answers from the same replicas at the same times. A reload that is
 * refused leaves everything as it was.
 */
const RELOAD_AT = secondsToUs(20)
/** By then every newcomer is warm and every removed pool is gone. */
const PLAY_AT = secondsToUs(600)
const RUNS = 25
const KEY_IDS = TENANTS.flatMap((id) => [`${id}-1`, `${id}-2`])

const bearerOf = (id: string) => ({ req: { headers: { authorization: `Bearer ${keyOf(id)}` } } })

function viewOf({ platform, control }: ControlledWorld): unknown {
  const { policies } = platform
  const { settings, flagHeaders } = control.wanted()
  const sorted = <T>(items: Iterable<readonly [string, T]>) =>
    Object.fromEntries([...items].toSorted(([a], [b]) => (a < b ? -1 : 1)))
  return {
    callers: KEY_IDS.map((id) => control.tenants.byHash(digestOf(keyOf(id)))),
    admins: ['ada', 'bob'].map((id) => control.admins.whoIs(bearerOf(id))),
    metricsReaders: ['ada', 'bob'].map((id) => control.metricsReaders.whoIs(bearerOf(id))),
    models: control.models.list(),
    known: sorted(policies.models),
    releases: sorted(policies.releases),
    pools: sorted(platform.pools.map((pool) => [pool.id, pool])),
    chosen: sorted(Array.from(policies.poolsByRelease, ([id, pools]) => [id, pools.map(({ pool }) => pool.id)])),
    rooms: sorted(
      policies.dispatcher
        .view()
        .pools.map(({ id, replicas }) => [
          id,
          replicas.map(({ kvTokensMax, limit }) => [kvTokensMax, promiseOf(limit)]),
        ]),
    ),
    promise: [policies.tightestPromise.ttftUs, policies.tightestPromise.interTokenUs],
    mode: policies.mode,
    rollouts: sorted(Array.from(policies.rollouts, ([id, rollout]) => [id, [rollout.settings, standingOf(rollout)]])),
    holdouts: sorted(Array.from(policies.holdouts, ([id, holdout]) => [id, holdout.options])),
    limits: settings.limits,
    flagHeaders,
  }
}

/** `20 ms a token`: what a limit aims at, without what it has learned from the questions of a holdout set. */
const promiseOf = ({ because, sequencesMax }: LimitView) => [
  sequencesMax,
  because.replace(/, the model corrected.*/, ''),
]

const standingOf = (rollout: ModelRollout) => {
  const { verdict: _verdict, drift: _drift, ...standing } = rollout.view()
  return standing
}

/** Sixty requests within three seconds, from every key to every model: enough to queue and to share. */
async function play(world: ControlledWorld): Promise<unknown[]> {
  const { control, clock } = world
  const callers = KEY_IDS.flatMap((id) => control.tenants.byHash(digestOf(keyOf(id))) ?? [])
  const models = control.models.list().map(({ model }) => model.name)
  const told: Promise<unknown>[] = []
  for (let i = 0; i < 60; i++) {
    clock.at(PLAY_AT + i * 50_000, () => {
      const { tenant, key } = callers[i % callers.length]!
      const model = models[(i >> 2) % models.length]!
      const arrivedAt = clock.now()
      const deadlineAt = arrivedAt + tenant.slo.totalUs
      const segments = [{ role: 'user' as const, tokens: 100 + 37 * (i % 11) }]
      const asked = {
        id: `r${i}`,
        tenant,
        key,
        model,
        slo: tenant.slo,
        arrivedAt,
        deadlineAt,
        segments,
        sessionHash: i,
      }
      told.push(
        world
          .serve(asked)
          .then(({ outcome, releaseId, poolId, replicaId, rung, grantedAt, firstTokenAt, refusal }) => [
            asked.id,
            outcome,
            releaseId,
            poolId,
            replicaId,
            rung,
            grantedAt,
            firstTokenAt,
            refusal?.code,
          ]),
      )
    })
  }
  await world.run(PLAY_AT + secondsToUs(120))
  return Promise.all(told)
}

const hasHoldout = ({ models }: Config): boolean => models.some(({ rollout }) => rollout?.holdout !== undefined)

describe('a reload', () => {
  it('from A to B behaves as a fresh start with B, or changes nothing', { timeout: 120_000 }, async () => {
    let reloaded = 0
    let refused = 0
    await fc.assert(
      fc.asyncProperty(configs, configs, async (a, b) => {
        const world = await ControlledWorld.start(a)
        await world.run(RELOAD_AT)
        const before = viewOf(world)
        const answer = await world.reload(b)
        const inForce = answer.kind === 'refused' ? a : withoutRestart(a, b)
        if (answer.kind === 'refused') {
          refused++
          expect(answer.refusal.because).toMatch(
            /^Nothing was changed\. The pool m\d-\d-\S+ is running, and its limit /,
          )
          expect(viewOf(world)).toEqual(before)
        } else {
          reloaded++
          const isWaiting = a.queue.waitMsMax !== b.queue.waitMsMax
          expect(answer.reload.needsRestart).toEqual(isWaiting ? ['queue.waitMsMax'] : [])
        }
        const fresh = await ControlledWorld.start(inForce)
        await Promise.all([world.run(PLAY_AT - 1), fresh.run(PLAY_AT - 1)])
        expect(viewOf(world)).toEqual(viewOf(fresh))
        // Holdout questions are requests too, and two processes ask theirs at different times.
        if (!hasHoldout(a) && !hasHoldout(b)) expect(await play(world)).toEqual(await play(fresh))
        expect(world.complaints).toEqual([])
        await Promise.all([world.close(), fresh.close()])
      }),
      { numRuns: RUNS },
    )
    expect(reloaded).toBeGreaterThan(RUNS / 3)
    expect(refused).toBeGreaterThan(0)
  })
})
