import { describe, expect, it } from 'vitest'
import { finished, type Turnout } from '../../test/support/scripted-backend.ts'
import { VirtualWorld } from '../../test/support/virtual-world.ts'
import type { Clock } from '../base/clock.ts'
import type { AuditEvent } from '../domain/audit-event.ts'
import type { AuditTrail } from './audit-ports.ts'

interface Kept {
  readonly events: AuditEvent[]
  readonly watched: Set<string>
}

interface Wish {
  readonly isStrict?: boolean
  readonly refusal?: string
  /** How long the disk takes; never: it does not. */
  readonly commitUs?: number | 'never'
}

async function start(turnouts: readonly Turnout[], { isStrict = false, refusal, commitUs = 0 }: Wish) {
  const kept: Kept = { events: [], watched: new Set() }
  const audit = (clock: Clock): AuditTrail => ({
    write: (event) => void kept.events.push(event),
    note: () => {},
    refusalOf: () => refusal,
    isStrict: () => isStrict,
    watch: (id) => void kept.watched.add(id),
    async committed() {
      await clock.sleep(commitUs === 'never' ? 5_000_000 : commitUs)
      return commitUs !== 'never'
    },
    forget: (id) => void kept.watched.delete(id),
  })
  const { world } = await VirtualWorld.scripted(turnouts, { audit })
  return { world, ...kept }
}

const SAYING: Turnout = { deltas: 1, ending: { kind: 'lost', because: 'the engine said "a secret prompt"' } }

describe('a request in the audit', () => {
  it('has one event at its end, with who asked, what was decided and why, and its text for a hash', async () => {
    const { world, events } = await start([finished(5)], {})
    const { done, request } = world.serve({ text: { body: { q: 1 }, raw: '{"q":1}' }, endUser: 'u1' })
    await world.run()
    const settled = await done
    expect(events).toEqual([
      expect.objectContaining({
        kind: 'inference.settled',
        actor: { kind: 'key', name: request.key.id },
        org: 'acme',
        tenant: 'acme',
        request: request.id,
        model: request.model,
        release: settled.releaseId,
        decision: { outcome: 'completed', code: undefined, because: 'finished', policy: undefined },
        usage: { prompt: 20, cached: 0, output: 5 },
        rung: 'full',
        user: 'u1',
        text: '{"q":1}',
      }),
    ])
    expect(world.unrest()).toEqual([])
  })

  it('is recorded when it is refused or fails, with the code, and without what stands between quotation marks', async () => {
    const { world, events } = await start([SAYING], {})
    world.serve()
    world.serve({ model: 'nobody-has-this' })
    await world.run()
    const decisions = events.map(({ decision }) => decision)
    expect(decisions.map((decision) => decision?.code)).toEqual(['model-not-found', 'replica-lost'])
    expect(JSON.stringify(decisions)).not.toContain('secret')
  })

  it('is refused by a full audit where its tenant wants that, before it costs anything', async () => {
    const { world, events } = await start([finished(5)], { refusal: 'The audit is full.' })
    const { done, sink } = world.serve()
    await world.run()
    expect(await done).toMatchObject({ outcome: 'rejected', refusal: { code: 'audit-unavailable' }, attempts: 0 })
    expect(sink.refusal).toMatchObject({ code: 'audit-unavailable' })
    expect(events).toHaveLength(1)
  })

  it('waits for nobody where its tenant is not strict', async () => {
    const { world, watched } = await start([finished(5)], { commitUs: 'never' })
    const { done } = world.serve()
    await world.run()
    expect(await done).toMatchObject({ outcome: 'completed' })
    expect(watched.size).toBe(0)
  })
})

describe('a request whose audit is strict', () => {
  it('has an event at its first turn, and its first byte leaves when that is on the disk', async () => {
    const { world, events, watched } = await start([finished(5)], { isStrict: true, commitUs: 700 })
    const { done, sink, request } = world.serve()
    await world.run()
    const settled = await done
    expect(events.map(({ kind }) => kind)).toEqual(['inference.begun', 'inference.settled'])
    expect(events[0]).toMatchObject({ request: request.id, decision: { outcome: 'begun', because: 'admitted' } })
    expect(sink).toMatchObject({ tokens: 5, isWellFormed: true, usage: settled.usage })
    expect(watched.size).toBe(0)
    expect(world.unrest()).toEqual([])
  })

  it('gets no byte but the refusal when the disk does not take it in time', async () => {
    const { world } = await start([finished(5)], { isStrict: true, commitUs: 'never' })
    const { done, sink } = world.serve()
    await world.run()
    expect(await done).toMatchObject({ outcome: 'failed', refusal: { code: 'audit-unavailable' } })
    expect(sink.calls).toEqual(['fail'])
    expect(sink.refusal).toMatchObject({ code: 'audit-unavailable' })
    expect(world.unrest()).toEqual([])
  })

  it('is refused for its own reason only when that is on the disk', async () => {
    const { world } = await start([finished(5)], { isStrict: true, commitUs: 3_000 })
    const { done, sink } = world.serve({ model: 'nobody-has-this' })
    await done
    expect(sink.calls).toEqual([])
    await world.run()
    expect(sink.refusal).toMatchObject({ code: 'model-not-found' })
  })
})
