import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { ModelRollout, type RolloutCommand, type RolloutSettings } from './model-rollout.ts'

const SETTINGS: RolloutSettings = {
  model: 'm',
  stable: 'm@1',
  canary: undefined,
  stickyBy: 'session',
  steps: [0.05, 0.25, 0.5],
  dwellUs: 1_000,
  pins: [],
  judge: {},
}

const command = fc.constantFrom<RolloutCommand>(
  { kind: 'start', canary: 'm@2' },
  { kind: 'start', canary: 'm@3' },
  { kind: 'pause' },
  { kind: 'resume' },
  { kind: 'promote' },
  { kind: 'roll-back' },
  { kind: 'undo' },
)

it('whatever was done, a rollout that is recalled stands where it stood and goes on alike', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 30 }), fc.array(command, { maxLength: 10 }), (before, after) => {
      const first = new ModelRollout(SETTINGS)
      for (const [i, one] of before.entries()) first.command(i, one, 'ada', 'a test')
      const memory = first.memory()
      if (memory === undefined) return
      const second = new ModelRollout(SETTINGS)
      // Through JSON, as the store keeps it.
      expect(second.recall(JSON.parse(JSON.stringify(memory)))).toBe(true)
      expect(second.view()).toEqual({ ...first.view(), verdict: second.view().verdict })
      expect(second.memory()).toEqual(memory)
      for (const [i, one] of after.entries()) {
        const [a, b] = [first, second].map((rollout) => rollout.command(100 + i, one, 'ada', 'a test'))
        expect(b?.kind).toBe(a?.kind)
        expect(second.serving).toBe(first.serving)
      }
    }),
  )
})

it('is not recalled when the configuration names another canary by now', () => {
  const first = new ModelRollout(SETTINGS)
  first.command(0, { kind: 'start', canary: 'm@2' }, 'ada', 'a test')
  const second = new ModelRollout({ ...SETTINGS, canary: 'm@3' })
  expect(second.recall(first.memory()!)).toBe(false)
  expect(second.memory()).toBeUndefined()
})

it('keeps to the steps that there are', () => {
  const first = new ModelRollout(SETTINGS)
  first.command(0, { kind: 'start', canary: 'm@2' }, 'ada', 'a test')
  first.command(1, { kind: 'promote' }, 'ada', 'a test')
  first.command(2, { kind: 'promote' }, 'ada', 'a test')
  const second = new ModelRollout({ ...SETTINGS, steps: [0.1] })
  second.recall(first.memory()!)
  expect(second.view()).toMatchObject({ step: 0, canaryRatio: 0.1 })
})
