import { afterAll, beforeAll, expect, it } from 'vitest'
import { sendForm } from '../support/large-form.ts'
import { authorization } from '../support/start-platform.ts'
import { MiB, startTransit, type TransitWorld } from '../support/transit-platform.ts'

/** A large file on its way through; `transit.test.ts` holds 64 MB at an engine that does not read. */

let world: TransitWorld

beforeAll(async () => {
  world = await startTransit({ stalledReaderMs: 2_000 })
})
afterAll(() => world.close())

it('a form with a file of 200 MB passes through without being held', { timeout: 120_000 }, async () => {
  const receivedBefore = world.engine.receivedBytes
  let betweenBytes = 0
  const onPiece = async (sentBytes: number): Promise<boolean> => {
    betweenBytes = Math.max(betweenBytes, sentBytes - (world.engine.receivedBytes - receivedBefore))
    return true
  }
  const answer = await sendForm({
    url: world.url('/v1/audio/transcriptions'),
    headers: authorization(),
    before: { model: 'whisper-1' },
    fileBytes: 200 * MiB,
    onPiece,
  })
  expect(answer.status).toBe(200)
  expect(world.engine.seen.at(-1)?.body?.bytes).toBeGreaterThan(200 * MiB)
  // What the client has sent and the engine has not got: in the gateway, and in the kernel's buffers of two connections.
  expect(betweenBytes).toBeLessThan(32 * MiB)
})
