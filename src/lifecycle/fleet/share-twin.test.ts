import { describe, expect, it } from 'vitest'
import { makePoolPolicies } from '../../assembly/assemble.ts'
import { buildConfig } from '../../config/load.ts'
import { toPools } from '../../config/to-domain.ts'
import { Fleet } from './fleet.ts'
import { shareTwin } from './share-twin.ts'

/** Two pools at one address, and a third at another. */
function fleetOf() {
  const at = (id: string, url: string) => ({ id, model: 'm', backend: { kind: 'http-openai', url } })
  const tree = {
    models: [{ name: 'm' }],
    pools: [at('a', 'http://gpu-1/v1'), at('b', 'http://GPU-1/v1/'), at('c', 'http://gpu-2/v1')],
    tenants: [{ id: 't', keys: [] }],
  }
  const config = buildConfig({ path: 'x.yaml', tree, lineOf: () => undefined }, {})
  const promise = { ttftUs: 1_000_000, interTokenUs: 50_000 }
  const fleet = new Fleet()
  const pools = toPools(config).map((setup) => makePoolPolicies(config, setup, promise, 0))
  const [a, b, c] = pools.map((known) => {
    fleet.addPool(known)
    const replica = known.pool.replicas[0]!
    shareTwin(fleet, known, replica)
    return { known, replica }
  })
  return { fleet, a: a!, b: b!, c: c! }
}

describe('an engine that two pools have', () => {
  it('is learned once', () => {
    const { a, b, c } = fleetOf()
    expect(b.known.twins?.of(b.replica.id)).toBe(a.known.twins?.of(a.replica.id))
    expect(c.known.twins?.of(c.replica.id)).not.toBe(a.known.twins?.of(a.replica.id))
  })

  it('has one replica that stands for it, and the next when that is gone', () => {
    const { fleet, a, b, c } = fleetOf()
    expect(fleet.standsFor(b.replica)).toBe(a.replica)
    expect(fleet.standsFor(c.replica)).toBe(c.replica)
    // Another replica of the first pool changes nothing.
    fleet.setReplicas(a.known, [a.replica, { ...a.replica, id: 'a-more', engineId: 'more' }])
    expect(fleet.standsFor(b.replica)).toBe(a.replica)
    fleet.dropPool('a')
    expect(fleet.standsFor(b.replica)).toBe(b.replica)
    expect([...fleet.sameEngine(b.replica)]).toEqual([b.replica])
    fleet.dropPool('b')
    expect([...fleet.sameEngine(b.replica)]).toEqual([])
  })

  it('is nobody else’s where a replica names none', () => {
    const { fleet, a } = fleetOf()
    const { engineId: _engineId, ...own } = a.replica
    expect(fleet.standsFor(own)).toBe(own)
  })
})
