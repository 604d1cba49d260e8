import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { COMPONENTS, type Manifest, nameOf, readManifests, writtenIn } from './support/kubernetes-manifests.ts'
import { type ChartValues, defaultValues, renderChart } from './support/render-chart.ts'

/** The chart is made from the Kustomize files, and renders what they say. Helm itself is not run. */
interface ChartsScript {
  readonly chartFiles: () => (readonly [path: string, text: string])[]
}
const { chartFiles } = (await import(new URL('../scripts/charts.mjs', import.meta.url).href)) as ChartsScript

const root = (path: string): URL => new URL(`../${path}`, import.meta.url)

const rendered = (more: ChartValues = {}, namespace = 'spillway'): Manifest[] =>
  readManifests(renderChart({ ...defaultValues(), ...more }, namespace))

const inOrder = (manifests: readonly Manifest[]): Manifest[] =>
  [...manifests].sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1))

const camel = (name: string): string => name.replace(/-(.)/g, (_all, letter: string) => letter.toUpperCase())

describe('the chart', () => {
  it.each(chartFiles())('%s is what `npm run charts` writes', (path, text) => {
    expect(existsSync(root(path)) && readFileSync(root(path), 'utf8') === text, 'run `npm run charts`').toBe(true)
  })

  it('has no file that nobody makes', () => {
    const made = chartFiles().map(([path]) => path)
    const there = readdirSync(root('deploy/helm/spillway'), { recursive: true, withFileTypes: true })
    const files = there.filter((entry) => entry.isFile()).map((entry) => entry.name)
    expect(files.length).toBe(made.filter((path) => path.startsWith('deploy/helm/')).length)
  })

  it('is the base, with two gateways, where nothing is set', () => {
    const base = writtenIn('base').map((manifest) =>
      manifest.kind === 'Deployment' ? { ...manifest, spec: { ...manifest.spec, replicas: 2 } } : manifest,
    )
    expect(inOrder(rendered())).toEqual(inOrder(base))
  })

  it('has no number of gateways where an HPA scales them', () => {
    const all = rendered({ gatewayHpa: { enabled: true, min: 3, max: 12 } })
    expect(inOrder(all)).toEqual(inOrder([...writtenIn('base'), ...writtenIn('components/gateway-hpa')]))
  })

  it.each(COMPONENTS)('switches on %s, which is as it is written', (name) => {
    const enabled = { ...(defaultValues()[camel(name)] as object), enabled: true }
    const names = new Set(writtenIn('base').map(nameOf))
    const added = rendered({ [camel(name)]: enabled }).filter((manifest) => !names.has(nameOf(manifest)))
    expect(added.length).toBeGreaterThan(0)
    expect(inOrder(added)).toEqual(inOrder(writtenIn(`components/${name}`)))
  })

  it('follows its values', () => {
    const all = rendered(
      {
        image: 'registry.example/spillway@sha256:abc',
        secretName: 'mine',
        env: [{ name: 'DATABASE_URL_FILE', value: '/run/secrets/spillway/database-url' }],
        resources: { requests: { cpu: '4' } },
        config: 'models: []\n',
        enginesKeda: { enabled: true },
      },
      'llm',
    )
    const text = JSON.stringify(all)
    expect(text).toContain('registry.example/spillway@sha256:abc')
    expect(text).toContain('"secretName":"mine"')
    expect(text).toContain('DATABASE_URL_FILE')
    expect(text).toContain('"resources":{"requests":{"cpu":"4"}}')
    expect(text).toContain('{"spillway.yaml":"models: []\\n"}')
    expect(text).toContain('http://spillway.llm.svc/autoscale/chat')
    expect(all.find(({ kind }) => kind === 'RoleBinding')?.subjects?.[0]?.['namespace']).toBe('llm')
  })

  it('refuses two writers of one number', () => {
    const two = { enginesHpa: { enabled: true }, enginesKeda: { enabled: true } }
    expect(() => rendered(two)).toThrow('enginesHpa and enginesKeda would both write')
  })
})
