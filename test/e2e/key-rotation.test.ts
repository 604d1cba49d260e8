import { afterEach, describe, expect, it } from 'vitest'
import { ROTATIONS, rotateUnderLoad, startForRotation } from '../support/key-rotation.ts'
import type { TestPlatform } from '../support/start-platform.ts'

let platform: TestPlatform | undefined
afterEach(() => platform?.close())

describe('a rotation with a grace', () => {
  it('costs clients that go on sending not one answer', { timeout: 120_000 }, async () => {
    platform = await startForRotation({ path: 'memory:' })
    const { statuses, answered } = await rotateUnderLoad([platform])
    expect([...statuses.keys()]).toEqual([200])
    expect(answered.size).toBe(ROTATIONS + 1)
  })
})
