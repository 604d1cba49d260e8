import { describe, expect, it } from 'vitest'
import { openApiDocument } from '../gateway/openapi.ts'
import { liveRoutes, type RouteParts } from './live-routes.ts'

type Paths = Readonly<Record<string, Readonly<Record<string, object>>>>

/** Routes as they are made at a start; none of them is asked anything, so that nothing needs to stand behind them. */
function routes() {
  const server = { stalledReaderMs: 1, keepAliveMs: 1, bodyBytesMax: 1, aheadBytesMax: 1, basePath: '' }
  const config = { server, retrieval: {}, regions: { local: 'here' }, jobs: {} }
  const parts = {
    config,
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
  return liveRoutes(parts as unknown as RouteParts)
}

/** The document itself, and what one region's gateway asks of another. */
const UNDESCRIBED = new Set(['GET /openapi.json', 'GET /spillway/region', 'POST /spillway/witness'])

describe('the description of the API', () => {
  it('has every route that is served', () => {
    const document = JSON.parse(openApiDocument({ version: '1.0.0', basePath: '', admin: {} as never }))
    const { paths } = document as { paths: Paths }
    const described = Object.entries(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    )
    const isDescribed = (route: string): boolean =>
      route.endsWith('/*')
        ? described.some((one) => one.startsWith(route.slice(0, -1)))
        : described.includes(route) || UNDESCRIBED.has(route)
    const served = routes().map(({ method, path }) => `${method} ${path}`)
    expect(served.length).toBeGreaterThan(60)
    expect(served).toContain('POST /openai/v1/chat/completions')
    expect(served).toContain('GET /openai/models/*')
    expect(served.filter((route) => !isDescribed(route))).toEqual([])
  })
})
