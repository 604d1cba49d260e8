import { expect, it } from 'vitest'
import { ACME } from '../../test/support/requests.ts'
import { finished } from '../../test/support/scripted-backend.ts'
import { VirtualWorld } from '../../test/support/virtual-world.ts'
import type { SecondClosed } from '../domain/cost-entry.ts'
import { SimulatedGateway } from './gateway.ts'

const LOST_AT = 3_500_000

it('a lost gateway bills nothing after its loss, whatever its tickets still wait for', async () => {
  const { world } = await VirtualWorld.scripted([finished(1)], {
    answers: (clock) => ({
      find: async () => {
        await clock.sleep(1_000_000)
        return { kind: 'miss', because: 'the test says so' }
      },
      keep: () => {},
      likeness: () => Promise.resolve(undefined),
    }),
  })
  const { platform } = world
  const gateway = new SimulatedGateway('far', world.virtual, () => ({ platform }))
  gateway.start()
  await world.run(LOST_AT)
  const answerCache = { similarityMin: 0.9, temperatureMax: 1, ttlUs: 1e9, checkRatio: 0 }
  const served = world.serve({ tenant: { ...ACME, answerCache }, cacheable: { promptVersion: 'v', question: 'what?' } })
  gateway.lose()
  await world.run(LOST_AT)
  expect(served.settled).toBeUndefined()
  await world.run(LOST_AT + 5_000_000)
  expect(served.settled).toMatchObject({ outcome: 'rejected', refusal: { code: 'shutting-down' } })
  const closed = world.entries.filter((entry): entry is SecondClosed => entry.kind === 'second-closed')
  expect(closed.at(-1)).toMatchObject({ at: LOST_AT, toAt: LOST_AT })
})
