import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { parseConfigFile } from '../src/config/fs-config-file.ts'
import { hashKey } from '../src/config/key-hash.ts'
import { buildConfig } from '../src/config/load.ts'
import { settings } from '../src/config/settings.ts'
import { ROOT } from './support/child.ts'

/** compose.yaml and what it mounts, as far as it can be known without a Docker Engine. */
interface Service {
  readonly image?: string
  readonly ports?: readonly string[]
  readonly environment?: Readonly<Record<string, unknown>>
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>
  readonly healthcheck?: object
  readonly profiles?: readonly string[]
  readonly build?: object
  readonly read_only?: boolean
  readonly volumes?: readonly string[]
}
const text = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const composeText = text('compose.yaml')
interface ComposeFile {
  readonly services: Readonly<Record<string, Service>>
}
const { services } = parse(composeText, { merge: true }) as ComposeFile
const debian = parse(text('deploy/compose/compose.debian.yaml'), { merge: true }) as ComposeFile
const ours = Object.entries(services).filter(([, { build }]) => build !== undefined)
const foreign = Object.entries(services).filter(([, { build }]) => build === undefined)

const { COMPOSE_VARIABLES } = (await import(new URL('../scripts/settings.mjs', import.meta.url).href)) as {
  COMPOSE_VARIABLES: readonly (readonly [name: string, value: string, meaning: string])[]
}

describe('compose.yaml', () => {
  it('has the services of the platform, and one gateway alone as a profile', () => {
    expect(Object.keys(services).sort()).toEqual(
      [
        'balancer',
        'gateway-1',
        'gateway-2',
        'retrieval',
        'engine-1',
        'engine-2',
        'engine-3',
        'minimal',
        'postgres',
        'redis',
        'prometheus',
        'grafana',
      ].sort(),
    )
    expect(Object.entries(services).filter(([, { profiles }]) => profiles !== undefined)).toMatchObject([
      ['minimal', { profiles: ['minimal'] }],
    ])
  })

  it('names only variables that .env.example explains, with the same defaults', () => {
    const known = new Map([
      ...COMPOSE_VARIABLES.map(([name, value]) => [name, value] as const),
      // An empty value leaves the default to Spillway.
      ...settings.flatMap(({ env }) => (env === undefined ? [] : [[env, ''] as const])),
      ['RETRIEVAL_KEY', 'known-to-everybody-change-it'] as const,
    ])
    const used = [...`${composeText}${text('deploy/compose/compose.debian.yaml')}`.matchAll(/\$\{(\w+):-([^}]*)\}/g)]
    expect(used.length).toBeGreaterThan(20)
    for (const [, name = '', value] of used) expect([name, value]).toEqual([name, known.get(name)])
    const names = new Set(used.map(([, name]) => name))
    expect(COMPOSE_VARIABLES.map(([name]) => name).filter((name) => !names.has(name))).toEqual([])
    // Nothing is interpolated without a default.
    expect(composeText.replaceAll(/\$\{\w+:-[^}]*\}/g, '').replaceAll('$$', '')).not.toContain('$')
  })

  it('takes every image from a variable, publishes on loopback only, and starts by health', () => {
    for (const [name, { image, ports = [], depends_on = {} }] of Object.entries(services)) {
      expect(image, name).toMatch(/^\$\{\w+_IMAGE:-[^}]+\}$/)
      for (const port of ports) expect(port, name).toMatch(/^127\.0\.0\.1:/)
      for (const [other, { condition }] of Object.entries(depends_on)) {
        expect([name, other, condition]).toEqual([name, other, 'service_healthy'])
      }
    }
    // Ours have the health check of their image.
    for (const [name, { healthcheck }] of foreign) expect(healthcheck, name).toBeDefined()
    for (const [name, { read_only }] of ours) expect([name, read_only]).toEqual([name, true])
  })

  it('sets only variables that Spillway reads', () => {
    const known = new Set([...settings.map(({ env }) => env), 'HEALTH_URL'])
    for (const [name, { environment = {} }] of ours) {
      expect([name, Object.keys(environment).filter((variable) => !known.has(variable))]).toEqual([name, []])
    }
  })

  it('has a Debian variant of every foreign service but Grafana, which it leaves out', () => {
    const { grafana, ...built } = debian.services
    expect(grafana).toEqual({ profiles: ['left-out'] })
    expect(Object.keys(built).sort()).toEqual(
      foreign
        .map(([name]) => name)
        .filter((name) => name !== 'grafana')
        .sort(),
    )
  })
})

describe('what is mounted', () => {
  it.each(['spillway', 'minimal'])('%s.yaml is a good configuration with the demo’s keys', (name) => {
    const path = `deploy/compose/${name}.yaml`
    const config = buildConfig(parseConfigFile(path, text(path)), {})
    expect(config.tenants.map(({ keys }) => keys[0]?.hash)).toEqual(
      ['sk-demo-acme', 'sk-demo-globex', 'sk-demo-initech'].map(hashKey),
    )
  })

  it('names services that are there', () => {
    const named = ['deploy/compose/spillway.yaml', 'deploy/compose/prometheus.yaml', 'deploy/compose/haproxy.cfg']
      .flatMap((path) => [...text(path).matchAll(/\b([a-z]+(?:-\d)?):(?:8000|8080|8090|9464)\b/g)])
      .map(([, name]) => name as string)
    expect([...new Set(named)].filter((name) => services[name] === undefined)).toEqual([])
    expect(named.length).toBeGreaterThan(8)
  })
})
