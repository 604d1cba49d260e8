import { expect, it } from 'vitest'
import { secondsToUs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import { ServingState } from './serving-state.ts'

it('is ready between its load and its leaving, and answers until it closes', async () => {
  const clock = new VirtualClock()
  const state = new ServingState(clock, 40)
  expect(state.readiness()).toEqual({ isReady: false, because: 'the weights are being loaded' })
  expect(state.takesRequests).toBe(false)
  await clock.run(secondsToUs(40))
  expect(state.readiness().isReady).toBe(true)
  expect(state.takesRequests).toBe(true)
  state.leave()
  expect(state.readiness()).toEqual({ isReady: false, because: 'shutting down' })
  expect(state.takesRequests).toBe(true)
  state.close()
  expect(state.takesRequests).toBe(false)
})
