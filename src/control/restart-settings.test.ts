import { describe, expect, it } from 'vitest'
import { buildConfig } from '../config/load.ts'
import { settings } from '../config/settings.ts'
import { RESTART_SETTINGS, restartNeeded, withoutRestart } from './restart-settings.ts'

const config = (tree: Record<string, unknown>) =>
  buildConfig({ path: 'test.yaml', tree: { tenants: [{ id: 'a', keys: [] }], ...tree }, lineOf: () => undefined }, {})

/** What a running process takes up. A setting that is new must be put on one of the two lists. */
const LIVE = [
  'models',
  'pools',
  'slos',
  'orgs',
  'tenants',
  'admin.keys',
  'admin.metricsKeys',
  'upstreams',
  'prices',
  'admission.mode',
  'regions.peers',
  'limits.choicesMax',
  'limits.promptTokensMax',
  'screening',
]

describe('settings that need a restart', () => {
  it('are real settings, and every setting is on exactly one of the two lists', () => {
    const isUnder = (path: string, prefix: string): boolean => path === prefix || path.startsWith(`${prefix}.`)
    const paths = settings.map(({ path }) => path.join('.').replace(/\[\].*$/, ''))
    for (const prefix of [...Object.keys(RESTART_SETTINGS), ...LIVE])
      expect(
        paths.some((path) => isUnder(path, prefix)),
        prefix,
      ).toBe(true)
    for (const path of paths) {
      const restarts = Object.keys(RESTART_SETTINGS).filter((prefix) => isUnder(path, prefix))
      const lives = LIVE.filter((prefix) => isUnder(path, prefix))
      expect([...restarts, ...lives], path).toHaveLength(1)
    }
  })

  it('are named by their leaves, and stay as they were', () => {
    const present = config({ server: { port: 8_000 }, limits: { choicesMax: 4 }, admission: { safetyMargin: 0.2 } })
    const next = config({
      server: { port: 9_000, metricsPort: 9_100 },
      limits: { choicesMax: 8 },
      logging: { level: 'debug' },
      admission: { mode: 'observe' },
    })
    expect(restartNeeded(present, next)).toEqual([
      'server.port',
      'server.metricsPort',
      'admission.safetyMargin',
      'logging.level',
    ])
    const inForce = withoutRestart(present, next)
    expect(inForce.server).toEqual(present.server)
    expect(inForce.logging).toEqual(present.logging)
    expect(inForce.admission).toMatchObject({ safetyMargin: 0.2, mode: 'observe' })
    expect(inForce.limits.choicesMax).toBe(8)
    expect(restartNeeded(present, inForce)).toEqual([])
  })
})
