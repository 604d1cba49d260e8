import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { parseConfigFile } from '../src/config/fs-config-file.ts'
import { buildConfig } from '../src/config/load.ts'
import { missing } from './support/installed.ts'
import { fieldProblems, KUBERNETES_FIELDS } from './support/kubernetes-fields.ts'
import { build, FOLDERS, type Manifest, nameOf, OVERLAYS, writtenIn } from './support/kubernetes-manifests.ts'
import { applyDry } from './support/kubernetes-stub.ts'

/**
 * The manifests of deploy/kubernetes: every field is one that Kubernetes has, and what they say of Spillway is true. What
 * is written is checked everywhere; what Kustomize builds of it where kubectl is there. No cluster is asked.
 */
const noKubectl = missing('kubectl')

interface Container {
  readonly name: string
  readonly image: string
  readonly args: readonly string[]
  readonly env?: ReadonlyArray<{ readonly name: string; readonly value: string }>
  readonly startupProbe?: Probe
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly resources: Record<'requests' | 'limits', Record<string, string>>
  readonly securityContext?: Record<string, unknown>
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string }
}
interface PodSpec {
  readonly containers: readonly Container[]
  readonly terminationGracePeriodSeconds: number
  readonly securityContext?: Record<string, unknown>
  readonly serviceAccountName?: string
}

const podOf = ({ spec = {} }: Manifest): PodSpec => (spec['template'] as { spec: PodSpec }).spec
const find = (all: readonly Manifest[], kind: string, name: string): Manifest => {
  const found = all.find((one) => one.kind === kind && one.metadata.name === name)
  if (found === undefined) throw new Error(`no ${kind} ${name}`)
  return found
}
const named = (all: readonly Manifest[], kind: string): Manifest[] => all.filter((one) => one.kind === kind)

/** The settings that a gateway of this folder would run with; secrets of mounted files are made up. */
function settingsOf(all: readonly Manifest[]) {
  const text = find(all, 'ConfigMap', 'spillway').data?.['spillway.yaml'] ?? ''
  const env = podOf(find(all, 'Deployment', 'spillway')).containers[0]?.env ?? []
  const values = env.map(({ name, value }): [string, string] => {
    if (name === 'DATABASE_URL_FILE') return ['DATABASE_URL', 'postgres://u:p@db/x']
    if (name === 'SPILLWAY_SHARING_REDIS_URL_FILE') return ['SPILLWAY_SHARING_REDIS_URL', 'redis://r:6379']
    return name.endsWith('_FILE') ? [name.replace(/_FILE$/, ''), 'sk-made-up'] : [name, value]
  })
  return buildConfig(parseConfigFile('spillway.yaml', text), Object.fromEntries(values))
}

describe('what is written', () => {
  it.each(FOLDERS)('%s has only fields that there are', (folder) => {
    const all = writtenIn(folder)
    expect(all.flatMap((manifest) => fieldProblems(manifest))).toEqual([])
  })

  it('is found wrong when it is', () => {
    const [good] = writtenIn('base').filter(({ kind }) => kind === 'Deployment')
    const wrong = (change: (spec: Record<string, unknown>) => void): string[] => {
      const copy = structuredClone(good) as Manifest
      change(copy.spec as Record<string, unknown>)
      return fieldProblems(copy)
    }
    expect(wrong((spec) => Object.assign(spec, { replicas: '3' }))).toEqual([
      'apps/v1 Deployment.spec.replicas is not integer',
    ])
    expect(wrong((spec) => Object.assign(spec, { replica: 3 }))).toEqual([
      'apps/v1 Deployment.spec.replica is not a field',
    ])
    expect(wrong((spec) => delete spec['selector'])).toEqual(['apps/v1 Deployment.spec.selector is missing'])
    expect(fieldProblems({ apiVersion: 'apps/v1beta1', kind: 'Deployment' })).toEqual([
      'apps/v1beta1 Deployment is not a kind that we use',
    ])
  })

  it('uses every kind of the list', () => {
    const used = new Set(FOLDERS.flatMap(writtenIn).map(({ apiVersion, kind }) => `${apiVersion} ${kind}`))
    expect([...used].sort()).toEqual(Object.keys(KUBERNETES_FIELDS).sort())
  })

  it('has the alerts of deploy/prometheus', () => {
    const rules = parse(readFileSync(new URL('../deploy/prometheus/spillway.rules.yaml', import.meta.url), 'utf8')) as {
      groups: unknown
    }
    const rule = find(writtenIn('components/prometheus'), 'PrometheusRule', 'spillway')
    expect(rule.spec).toEqual({ groups: rules.groups })
  })

  it('has no secret in it', () => {
    const all = FOLDERS.flatMap(writtenIn)
    expect(named(all, 'Secret')).toEqual([])
    for (const deployment of named(all, 'Deployment'))
      for (const { args, env = [] } of podOf(deployment).containers) {
        expect(args.join(' ')).not.toMatch(/key|password|secret|token/i)
        for (const { name } of env) expect(name).not.toMatch(/KEY$|PASSWORD$|TOKEN$|URL$/)
      }
  })
})

describe('the gateway', () => {
  const base = writtenIn('base')
  const pod = podOf(find(base, 'Deployment', 'spillway'))
  const [gateway] = pod.containers as readonly [Container]

  it('is asked three questions, none of which a store answers', () => {
    const paths = [gateway.startupProbe, gateway.livenessProbe, gateway.readinessProbe].map((one) => one?.httpGet.path)
    expect(paths).toEqual(['/health', '/health', '/health/ready'])
  })

  it('has time to end its answers', () => {
    const { shutdownDelayMs, shutdownGraceMs } = settingsOf(base).server
    expect(shutdownDelayMs).toBeGreaterThanOrEqual(5_000)
    expect(pod.terminationGracePeriodSeconds * 1_000).toBeGreaterThan(shutdownDelayMs + shutdownGraceMs)
  })

  it('has no rights on its node', () => {
    expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
    expect(gateway.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
  })

  it('may read what it must, and no more', () => {
    const rulesOf = (folder: string) => named(writtenIn(folder), 'Role').flatMap(({ rules = [] }) => rules)
    expect(rulesOf('base')).toEqual([
      { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['list', 'watch'] },
    ])
    expect(rulesOf('components/inference-pool').flatMap(({ verbs = [] }) => verbs)).not.toContain('get')
    expect(rulesOf('components/actuator')).toEqual([
      { apiGroups: ['apps'], resources: ['deployments/scale'], resourceNames: ['vllm-chat'], verbs: ['get', 'update'] },
    ])
    const all = FOLDERS.flatMap(rulesOf)
    expect(JSON.stringify(all)).not.toMatch(/"\*"|secrets/)
    expect(FOLDERS.flatMap(writtenIn).map(({ kind }) => kind)).not.toContain('ClusterRole')
  })
})

describe.skipIf(noKubectl !== undefined)('what Kustomize builds', () => {
  const built = new Map<string, Manifest[]>()
  const overlay = (name: string): Manifest[] => {
    const known = built.get(name) ?? build(`overlays/${name}`)
    built.set(name, known)
    return known
  }

  it('of the base is the base', () => {
    const inOrder = (all: readonly Manifest[]) => [...all].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))
    expect(inOrder(build('base'))).toEqual(inOrder(writtenIn('base')))
  })

  describe.each(OVERLAYS)('%s', (name) => {
    it('has only fields that there are, in one namespace, and no object twice', () => {
      const all = overlay(name)
      expect(all.flatMap((one) => fieldProblems(withoutNamespace(one)))).toEqual([])
      for (const one of all)
        if (one.kind !== 'Namespace') expect([nameOf(one), one.metadata.namespace]).toEqual([nameOf(one), 'spillway'])
      expect(new Set(all.map(nameOf)).size).toBe(all.length)
    })

    it('has settings that can be served, with services that there are', () => {
      const all = overlay(name)
      for (const { backend } of settingsOf(all).pools) {
        const kubernetes = backend.kind === 'simulated' ? undefined : backend.discover?.kubernetes
        const service = find(all, 'Service', kubernetes?.service ?? '')
        const ports = service.spec?.['ports'] as ReadonlyArray<{ name: string }>
        expect(ports.map((port) => port.name)).toContain(kubernetes?.port)
        expect(kubernetes?.namespace).toBe(service.metadata.namespace)
      }
    })

    it('has one writer of every number, whose bounds are those of the pool', () => {
      const all = overlay(name)
      const targets = [...named(all, 'HorizontalPodAutoscaler'), ...named(all, 'ScaledObject')].map(
        ({ spec = {} }) => (spec['scaleTargetRef'] as { name: string }).name,
      )
      expect(new Set(targets).size).toBe(targets.length)
      for (const target of targets) {
        const deployment = find(all, 'Deployment', target)
        expect([target, deployment.spec?.['replicas']]).toEqual([target, undefined])
      }
      const { pools } = settingsOf(all)
      for (const { spec = {} } of named(all, 'ScaledObject')) {
        const [trigger] = spec['triggers'] as ReadonlyArray<{ metadata: { url: string } }>
        const poolId = trigger?.metadata.url.split('/autoscale/')[1]
        const pool = pools.find(({ id }) => id === poolId)
        expect(pool?.autoscale).toMatchObject({
          writer: 'external',
          minWarm: spec['minReplicaCount'],
          max: spec['maxReplicaCount'],
        })
        expect(trigger?.metadata.url).toMatch(/^http:\/\/spillway\.spillway\.svc\//)
      }
    })

    it('spreads gateways over zones and nodes', () => {
      const pod = podOf(find(overlay(name), 'Deployment', 'spillway')) as PodSpec & {
        topologySpreadConstraints: ReadonlyArray<{ topologyKey: string; labelSelector?: { matchLabels: object } }>
      }
      const keys = pod.topologySpreadConstraints.map(({ topologyKey }) => topologyKey)
      expect(keys).toEqual(['topology.kubernetes.io/zone', 'kubernetes.io/hostname'])
      for (const { labelSelector } of pod.topologySpreadConstraints)
        expect(labelSelector?.matchLabels).toEqual({
          'app.kubernetes.io/name': 'spillway',
          'app.kubernetes.io/component': 'gateway',
        })
    })

    it('says what every container may use, and runs no image whose version is not said', () => {
      for (const deployment of named(overlay(name), 'Deployment'))
        for (const { image, resources } of podOf(deployment).containers) {
          expect(image).toMatch(/:[^:]*\d/)
          expect(Object.keys(resources.requests)).toEqual(expect.arrayContaining(['cpu', 'memory']))
          expect(resources.limits).toHaveProperty('memory')
        }
    })

    it('is taken by kubectl, without a cluster', { timeout: 60_000 }, async () => {
      const { done, failed } = await applyDry(overlay(name))
      expect(failed).toBe('')
      expect(done).toHaveLength(overlay(name).length)
    })
  })

  it('of the two regions is one thing and its mirror image', () => {
    const [eu, us] = [overlay('region-eu'), overlay('region-us')]
    const mirrored = (text = ''): string => text.replaceAll(/\b(eu|us)\b/g, (one) => (one === 'eu' ? 'us' : 'eu'))
    const textOf = (all: readonly Manifest[]) => find(all, 'ConfigMap', 'spillway').data?.['spillway.yaml']
    expect(mirrored(textOf(eu))).toBe(textOf(us))
    // Settings and the other region's addresses are all that differs.
    const others = (all: readonly Manifest[]): string =>
      JSON.stringify(all.filter(({ kind }) => kind !== 'ConfigMap')).replaceAll(/203\.0\.113|198\.51\.100/g, '')
    expect(others(eu)).toBe(others(us))
    const { regions, pools } = settingsOf(overlay('region-eu'))
    expect([regions.local, regions.peers[0]?.region, new Set(pools.map(({ region }) => region))]).toEqual([
      'eu',
      'us',
      new Set(['eu']),
    ])
    const { regions: _none, ...production } = settingsOf(overlay('production'))
    expect(settingsOf(overlay('region-eu')).models).toEqual(production.models)
    expect(pools.map(({ id }) => id)).toEqual(production.pools.map(({ id }) => id))
  })
})

function withoutNamespace(manifest: Manifest): Manifest {
  const { namespace: _namespace, ...metadata } = manifest.metadata
  return { ...manifest, metadata }
}
