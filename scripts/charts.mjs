// Writes the Helm chart (deploy/helm/spillway) from the Kustomize base and components, and the PrometheusRule from the
// rules of deploy/prometheus; a test fails when they differ. usage: npm run charts
//
// One truth: a manifest is written once, in deploy/kubernetes. A template is that text with some words replaced by values,
// and a component is a template that a value switches on. A replacement that does not find its words is an error.
import { mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')
const KUSTOMIZE = 'deploy/kubernetes'
const CHART = 'deploy/helm/spillway'
const RULES = 'deploy/prometheus/spillway.rules.yaml'
const RULE_OBJECT = `${KUSTOMIZE}/components/prometheus/prometheusrule.yaml`
const MADE = '# Made by "npm run charts"; change deploy/kubernetes instead.\n'

const read = (path) => readFileSync(join(ROOT, path), 'utf8')

/** Words in all templates that depend on where the chart is installed. */
const EVERYWHERE = [
  [
    'kind: ServiceAccount, name: spillway, namespace: spillway }',
    'kind: ServiceAccount, name: spillway, namespace: {{ .Release.Namespace }} }',
  ],
  ['http://spillway.spillway.svc/', 'http://spillway.{{ .Release.Namespace }}.svc/'],
]

/** Words of one file, by its path below deploy/kubernetes. Each stands there once, or the given number of times. */
const IN_FILES = {
  'base/deployment.yaml': [
    ['image: spillway:0.1.0', 'image: {{ .Values.image }}'],
    [
      '  selector:\n    matchLabels: { app.kubernetes.io/name: spillway, app.kubernetes.io/component: gateway }\n  strategy:',
      '  {{- if not .Values.gatewayHpa.enabled }}\n  replicas: {{ .Values.replicas }}\n  {{- end }}\n  selector:\n    matchLabels: { app.kubernetes.io/name: spillway, app.kubernetes.io/component: gateway }\n  strategy:',
    ],
    [
      '            - { name: LOG_FORMAT, value: json }\n',
      '            - { name: LOG_FORMAT, value: json }\n            {{- if .Values.env }}\n            {{- toYaml .Values.env | nindent 12 }}\n            {{- end }}\n',
    ],
    [
      '            requests: { cpu: "1", memory: 512Mi }\n            limits: { memory: 1Gi }\n',
      '            {{- toYaml .Values.resources | nindent 12 }}\n',
    ],
    ['secret: { secretName: spillway,', 'secret: { secretName: {{ .Values.secretName }},'],
  ],
  'components/gateway-hpa/horizontalpodautoscaler.yaml': [
    ['minReplicas: 3', 'minReplicas: {{ .Values.gatewayHpa.min }}'],
    ['maxReplicas: 12', 'maxReplicas: {{ .Values.gatewayHpa.max }}'],
  ],
  'components/engines/engines.yaml': [['image: vllm/vllm-openai:v0.11.0', 'image: {{ .Values.engineImage }}']],
  'components/engines-spot/engines.yaml': [['image: vllm/vllm-openai:v0.11.0', 'image: {{ .Values.engineImage }}']],
  'components/engines-mig/engines.yaml': [['image: vllm/vllm-openai:v0.11.0', 'image: {{ .Values.engineImage }}']],
}

/** Components that write the number of replicas of vllm-chat: one, ever. The actuator's gateway writes it, too. */
const WRITERS = ['actuator', 'enginesHpa', 'enginesKeda', 'enginesKedaPrometheus']

const oneWriter = () =>
  WRITERS.flatMap((one, i) => WRITERS.slice(i + 1).map((other) => [one, other]))
    .map(
      ([one, other]) =>
        `{{- if .Values.${one}.enabled }}{{- if .Values.${other}.enabled }}{{ fail "${one} and ${other} would both write the replicas of vllm-chat: switch one off" }}{{- end }}{{- end }}\n`,
    )
    .join('')

/** What the values of the chart are where nobody sets them: those of the base, and no component. */
function valuesText(components, config) {
  const switches = Object.fromEntries(components.map((name) => [camel(name), { enabled: false }]))
  switches.gatewayHpa = { enabled: false, min: 3, max: 12 }
  const values = {
    image: 'spillway:0.1.0',
    replicas: 2,
    resources: { requests: { cpu: '1', memory: '512Mi' }, limits: { memory: '1Gi' } },
    env: [],
    secretName: 'spillway',
    engineImage: 'vllm/vllm-openai:v0.11.0',
    ...switches,
    config,
  }
  const words = {
    image: ' Image of the gateway, with its registry and best with its digest.',
    replicas: ' Gateways, where no HPA scales them.',
    env: ' More variables, as { name: DATABASE_URL_FILE, value: /run/secrets/spillway/database-url }; never a secret itself.',
    secretName: ' Secret whose entries are files in /run/secrets/spillway.',
    config: ' spillway.yaml. Its namespaces must be the namespace that the chart is installed in.',
  }
  const text = stringify(values, { lineWidth: 0 })
  return `${MADE}${Object.entries(words).reduce((all, [key, about]) => all.replace(new RegExp(`^${key}:`, 'm'), `#${about}\n${key}:`), text)}`
}

const camel = (name) => name.replace(/-(.)/g, (_all, letter) => letter.toUpperCase())

/** Braces of a rule's own templates must pass through Helm. */
const escaped = (text) => text.replaceAll('{{', '{{ "{{" }}')

function replaceOnce(text, from, to, path) {
  const parts = text.split(from)
  if (parts.length !== 2) throw new Error(`${path} has ${JSON.stringify(from)} ${parts.length - 1} times, not once`)
  return parts.join(to)
}

function templateOf(path, manifest) {
  let text = escaped(manifest)
  for (const [from, to] of IN_FILES[path] ?? []) text = replaceOnce(text, from, to, path)
  for (const [from, to] of EVERYWHERE) text = text.replaceAll(from, to)
  if (path === 'base/configmap.yaml')
    text = `${text.slice(0, text.indexOf('  spillway.yaml: |'))}  spillway.yaml: |\n{{ .Values.config | indent 4 }}\n`
  const [kind, folder] = path.split('/')
  return kind === 'components' ? `{{- if .Values.${camel(folder)}.enabled }}\n${text}{{- end }}\n` : text
}

const resourcesOf = (folder) => parse(read(`${KUSTOMIZE}/${folder}/kustomization.yaml`)).resources

function prometheusRule() {
  const { groups } = parse(read(RULES))
  const labels = { 'app.kubernetes.io/name': 'spillway', 'app.kubernetes.io/component': 'gateway' }
  const rule = {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'spillway', labels },
    spec: { groups },
  }
  return `# Made by "npm run charts" from ${RULES}.\n${stringify(rule, { lineWidth: 0 })}`
}

/** Path → text of everything that is made. */
export function chartFiles() {
  const components = readdirSync(join(ROOT, KUSTOMIZE, 'components')).sort()
  const rule = prometheusRule()
  const manifest = (path) => (`${KUSTOMIZE}/${path}` === RULE_OBJECT ? rule : read(`${KUSTOMIZE}/${path}`))
  const folders = ['base', ...components.map((name) => `components/${name}`)]
  const templates = folders.flatMap((folder) =>
    resourcesOf(folder).map((file) => {
      const path = `${folder}/${file}`
      const name = folder === 'base' ? file : `${folder.split('/')[1]}-${file}`
      return [`${CHART}/templates/${name}`, `${MADE}${templateOf(path, manifest(path))}`]
    }),
  )
  const { version, description } = JSON.parse(read('package.json'))
  const chart = { apiVersion: 'v2', name: 'spillway', description, type: 'application', version, appVersion: version }
  const config = parse(read(`${KUSTOMIZE}/base/configmap.yaml`)).data['spillway.yaml']
  return [
    [RULE_OBJECT, rule],
    [`${CHART}/Chart.yaml`, `${MADE}${stringify(chart, { lineWidth: 0 })}`],
    [`${CHART}/values.yaml`, valuesText(components, config)],
    [`${CHART}/templates/one-writer.yaml`, `${MADE}${oneWriter()}`],
    ...templates,
  ]
}

if (process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  rmSync(join(ROOT, CHART), { recursive: true, force: true })
  for (const [path, text] of chartFiles()) {
    mkdirSync(join(ROOT, dirname(path)), { recursive: true })
    writeFileSync(join(ROOT, path), text)
  }
}
