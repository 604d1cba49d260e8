import { expect, it } from 'vitest'
import { type Viewer, ViewerPlaces } from './viewer-places.ts'

const tenant = (n: number, tenantId = 'acme', address = '10.0.0.1'): Viewer => ({ name: `key-${n}`, tenantId, address })
const OPERATOR: Viewer = { name: 'ada', tenantId: undefined, address: '10.0.0.1' }

/** How many of a thousand find a place. */
const seated = (places: ViewerPlaces, viewerOf: (n: number) => Viewer): number =>
  Array.from({ length: 1_000 }, (_, n) => places.take(viewerOf(n))).filter((stop) => stop !== undefined).length

it('has places for each key, each tenant and each address, and operators apart', () => {
  const places = new ViewerPlaces()
  expect(seated(places, () => tenant(0))).toBe(10)
  expect(seated(places, (n) => tenant(n + 1))).toBe(10)
  // Other tenants from the same address, and then from others.
  expect(seated(places, (n) => tenant(n, `org-${n}`))).toBe(20)
  expect(places.take(tenant(0, 'globex', '10.0.0.2'))).toBeDefined()
  expect(seated(places, (n) => tenant(n, `far-${n}`, `10.1.${n >> 8}.${n & 255}`))).toBe(400 - 41)
  expect(seated(places, () => OPERATOR)).toBe(25)
  expect(seated(places, (n) => ({ ...OPERATOR, name: `ben-${n}` }))).toBe(75)
})

it('takes a place back once, and forgets who has none', () => {
  const places = new ViewerPlaces()
  const stops = Array.from({ length: 10 }, () => places.take(tenant(0)))
  expect(places.take(tenant(0))).toBeUndefined()
  stops[0]?.()
  stops[0]?.()
  expect(seated(places, () => tenant(0))).toBe(1)
  for (const stop of stops) stop?.()
  expect(places.holderCount).toBe(4)
})
