import { expect, it } from 'vitest'
import { finished } from '../../test/support/scripted-backend.ts'
import { type Served, VirtualWorld } from '../../test/support/virtual-world.ts'
import type { Band } from '../domain/tenant.ts'
import { slotOf } from './return-slot.ts'

/** More requests than one engine answers in time: whoever comes next, in either band, is refused. */
async function overloaded() {
  const { world } = await VirtualWorld.scripted([finished(100)], {
    queueMax: 1_000,
    tree: { ladder: { enabled: false } },
  })
  const slo = { ...world.serve().request.slo, ttftUs: 500_000 }
  const ask = (band: Band, body: string): Served => world.serve({ band, slo, askName: () => body })
  for (const band of ['interactive', 'standard'] as const) {
    let last: Served | undefined
    for (let i = 0; last?.sink.refusal === undefined && i < 1_000; i++) {
      last = ask(band, `${band} ${i}`)
      await world.run(world.virtual.now())
    }
  }
  return { world, ask }
}

it('the same body has a slot in each band that it was refused in, and each is known at its own time', async () => {
  const { world, ask } = await overloaded()
  const { policies } = world.platform
  const now = world.virtual.now()
  const refused = (['standard', 'interactive'] as const).map((band) => ask(band, 'same'))
  await world.run(now)
  const dueAts = refused.map(({ sink }) => {
    expect(sink.refusal).toMatchObject({ code: 'predicted-late', slot: 'given' })
    return now + sink.refusal!.retryAfterUs!
  })
  const [later, sooner] = dueAts as [number, number]
  expect(sooner).toBeLessThan(later)
  const slotAt = (at: number, i: number) => slotOf(policies, at, refused[i]!.request)
  expect(slotAt(sooner, 1)).toMatchObject({ dueAt: sooner })
  expect(slotAt(sooner, 0)).toBeUndefined()
  expect(slotAt(later, 0)).toMatchObject({ dueAt: later })
})
