import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { PLAIN_BODIES, SCREENED_ROUTES, UNSCREENED_ROUTES } from '../../test/support/screened-routes.ts'
import { liveRoutes, type RouteParts } from './live-routes.ts'

/** Routes as they are made at a start; none of them is asked anything. */
function routes(): string[] {
  const server = { stalledReaderMs: 1, keepAliveMs: 1, bodyBytesMax: 1, aheadBytesMax: 1, basePath: '' }
  const config = { server, retrieval: {}, regions: { local: 'here' }, jobs: {} }
  const empty = {
    clock: {},
    platform: {},
    backends: {},
    tokens: {},
    control: {},
    telemetry: {},
    host: {},
    retrieval: {},
    jobs: {},
  }
  return liveRoutes({ config, ...empty } as unknown as RouteParts).map(({ method, path }) => `${method} ${path}`)
}

const withBody = routes().filter((route) => !/^(GET|DELETE) /.test(route))
const isUnscreened = (route: string): boolean => [...UNSCREENED_ROUTES.keys()].some((form) => form.test(route))

describe('law L14: every route that takes text', () => {
  it('is screened, or on the closed list', () => {
    expect(withBody.length).toBeGreaterThan(40)
    expect(withBody.filter((route) => !SCREENED_ROUTES.has(route) && !isUnscreened(route))).toEqual([])
    expect(withBody.filter((route) => SCREENED_ROUTES.has(route) && isUnscreened(route))).toEqual([])
  })

  it('is a route that there is', () => {
    expect([...SCREENED_ROUTES].filter((route) => !withBody.includes(route))).toEqual([])
    expect([...UNSCREENED_ROUTES.keys()].filter((form) => !withBody.some((route) => form.test(route)))).toEqual([])
  })

  it('collects its body where it is screened', () => {
    const folder = new URL('../gateway/routes/', import.meta.url)
    const plain = readdirSync(folder).filter(
      (name) => !name.endsWith('.test.ts') && readFileSync(new URL(name, folder), 'utf8').includes('collectBody('),
    )
    expect(plain.sort()).toEqual(Object.keys(PLAIN_BODIES).sort())
  })
})
