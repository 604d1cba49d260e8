import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { describe, expect, it } from 'vitest'
import { missing } from './support/installed.ts'
import { KUBERNETES_FIELDS, type Shape } from './support/kubernetes-fields.ts'
import { build, FOLDERS, OVERLAYS, writtenIn } from './support/kubernetes-manifests.ts'

/**
 * The published schemas of Kubernetes, KEDA and the Prometheus operator as judges of the manifests, and of our own list of
 * fields, which stands in for them everywhere else. They are large and not ours, so they are not in the project:
 * KUBERNETES_SCHEMAS_FOLDER names a folder with `kubernetes/schemas.json` (the API's OpenAPI schemas, joined, with `kinds`
 * from "apps/v1 Deployment" to a schema's name) and `crds/NAME_VERSION.json`.
 */
type Schema = Readonly<Record<string, unknown>>

interface SchemaNode {
  readonly type?: string
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema
}

const folder = process.env['KUBERNETES_SCHEMAS_FOLDER'] ?? ''
const whyNot = existsSync(join(folder, 'kubernetes', 'schemas.json'))
  ? undefined
  : 'KUBERNETES_SCHEMAS_FOLDER is not set'

const CRDS: Readonly<Record<string, string>> = {
  'keda.sh/v1alpha1 ScaledObject': 'scaledobject_v1alpha1',
  'keda.sh/v1alpha1 TriggerAuthentication': 'triggerauthentication_v1alpha1',
  'monitoring.coreos.com/v1 ServiceMonitor': 'servicemonitor_v1',
  'monitoring.coreos.com/v1 PrometheusRule': 'prometheusrule_v1',
}

describe.skipIf(whyNot !== undefined)('the published schemas', () => {
  const read = (path: string): Schema => JSON.parse(readFileSync(join(folder, path), 'utf8')) as Schema
  const joined = (): { kinds: Record<string, string>; components: { schemas: Record<string, Schema> } } =>
    read('kubernetes/schemas.json') as never

  /** Closed: an object with properties has no others. */
  const closed = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(closed)
    if (typeof node !== 'object' || node === null) return node
    const copy = Object.fromEntries(Object.entries(node).map(([key, value]) => [key, closed(value)]))
    const isOpen =
      'properties' in copy && !('additionalProperties' in copy) && !copy['x-kubernetes-preserve-unknown-fields']
    return isOpen ? { ...copy, additionalProperties: false } : copy
  }

  const { kinds, components } = whyNot === undefined ? joined() : { kinds: {}, components: { schemas: {} } }
  const ajv = new Ajv({
    strict: false,
    allErrors: true,
    formats: Object.fromEntries(
      ['int32', 'int64', 'double', 'byte', 'date-time', 'int-or-string'].map((name) => [name, true]),
    ),
  })
  if (whyNot === undefined) ajv.addSchema(closed({ $id: 'k', components }) as Schema)
  const schemaOf = (name: string): Schema => {
    const crd = CRDS[name]
    return crd === undefined
      ? { $ref: `k#/components/schemas/${kinds[name]}` }
      : (closed(read(`crds/${crd}.json`)) as Schema)
  }
  const judges = new Map(
    Object.keys(KUBERNETES_FIELDS).map((name) => [
      name,
      whyNot === undefined ? ajv.compile(schemaOf(name)) : undefined,
    ]),
  )

  const problems = (all: ReturnType<typeof writtenIn>): string[] =>
    all.flatMap((one) => {
      const judge = judges.get(`${one.apiVersion} ${one.kind}`)
      return judge?.(one)
        ? []
        : (judge?.errors ?? []).map(
            ({ instancePath, message, params }) =>
              `${one.kind}/${one.metadata.name}${instancePath} ${message} ${JSON.stringify(params)}`,
          )
    })

  it.each(FOLDERS)('take what is written in %s', (name) => expect(problems(writtenIn(name))).toEqual([]))

  it.skipIf(missing('kubectl') !== undefined).each(OVERLAYS)('take what is built of %s', (name) =>
    expect(problems(build(`overlays/${name}`))).toEqual([]),
  )

  it.each(Object.entries(KUBERNETES_FIELDS))('have the fields of %s that our list has', (name, shape) => {
    const resolve = (schema: Schema): Schema => {
      const [all] = (schema['allOf'] as Schema[] | undefined) ?? []
      const ref = (schema['$ref'] ?? all?.['$ref']) as string | undefined
      const found = ref === undefined ? undefined : components.schemas[ref.split('/').at(-1)!]
      return found === undefined ? schema : resolve(found)
    }
    const wrong: string[] = []
    const compare = (given: Shape, schema: Schema, at: string): void => {
      const {
        type,
        const: fixed,
        properties,
        items,
        required = [],
        additionalProperties,
      } = resolve(schema) as SchemaNode
      if (typeof given === 'string') {
        const wanted = { 'int-or-string': undefined, quantity: undefined }[given as 'quantity'] ?? given
        if (['integer', 'boolean', 'string'].includes(wanted) && type !== wanted && typeof fixed !== wanted)
          wrong.push(`${at}: ${wanted} is ${type}`)
        return
      }
      if (Array.isArray(given)) {
        if (type !== 'array' || items === undefined) wrong.push(`${at} is no list`)
        else compare((given as readonly [Shape])[0], items, `${at}[]`)
        return
      }
      const fields = given as Readonly<Record<string, Shape>>
      if (fields['*'] !== undefined) {
        if (additionalProperties === undefined) wrong.push(`${at} is no map`)
        else compare(fields['*'], additionalProperties, `${at}.*`)
        return
      }
      for (const [field, one] of Object.entries(fields)) {
        const plain = field.replace(/!$/, '')
        const known = properties?.[plain]
        if (known === undefined) wrong.push(`${at}.${plain} is not a field`)
        else compare(one, known, `${at}.${plain}`)
      }
      for (const field of required) if (!(`${field}!` in fields)) wrong.push(`${at}.${field} is required`)
    }
    // A definition of a custom resource leaves an object's metadata open.
    const { metadata: _metadata, 'metadata!': _required, ...own } = shape as Readonly<Record<string, Shape>>
    compare(
      name in CRDS ? own : shape,
      CRDS[name] === undefined ? components.schemas[kinds[name]!]! : read(`crds/${CRDS[name]}.json`),
      name,
    )
    expect(wrong.filter((one) => !one.endsWith('.metadata is required'))).toEqual([])
  })
})
