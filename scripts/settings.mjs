// Writes docs/operations/settings.md and .env.example from the schema; a test fails when they differ from it.
// usage: npm run settings
import { realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ConfigSchema } from '../src/config/schema.ts'
import { settings } from '../src/config/settings.ts'

export const PAGE_PATH = 'docs/operations/settings.md'
export const ENV_PATH = '.env.example'

export function settingsPage() {
  const names = [...new Set(settings.map(sectionOf))]
  return `# Settings

Every setting, from \`src/config/schema.ts\`; this page is made by \`npm run settings\`.

A flag wins over the environment, the environment over a \`.env\` file in the working directory, that over the
configuration file, and the file over the default. The file is YAML, given with \`--config\` or \`SPILLWAY_CONFIG\`;
\`npx spillway config check\` says whether it is good, and \`npx spillway config print\` shows what is in force. Lists (\`[]\`)
are written in the file only, and replace the built-in ones as a whole. What a change needs: [reload.md](reload.md). Every
variable may be given as \`NAME_FILE\`, a file with its value ([secrets.md](secrets.md)).

Without a file Spillway runs the demo: two simulated models and three tenants with published keys, on loopback only.

${names.map(sectionText).join('\n')}
## An example

\`\`\`yaml
server:
  host: 0.0.0.0
models:
  - name: llama-8b
    aliases: [gpt-4o-mini]
pools:
  - model: llama-8b
    backend: { kind: http-openai, apiKeyEnv: UPSTREAM_KEY }
    replicas: [http://gpu-1:8000/v1, http://gpu-2:8000/v1]
tenants:
  - id: acme
    weight: 2
    slo: fast
    keys:
      - id: acme-web
        hash: sha256:… # from: npx spillway keys create --tenant acme
\`\`\`
`
}

/** Settings outside any section come under their own name. */
const sectionOf = (setting) => setting.path[0].replace('[]', '')

function sectionText(name) {
  const rows = settings.filter((setting) => sectionOf(setting) === name)
  const hasEnv = rows.some((row) => row.env !== undefined)
  const cells = ['Setting', ...(hasEnv ? ['Environment'] : []), 'Default', 'Meaning']
  const table = [cells, cells.map(() => '---'), ...rows.map((row) => rowCells(row, hasEnv))]
  const about = ConfigSchema.properties[name].description
  return `## ${name}\n\n${about}\n\n${table.map((row) => `| ${row.join(' | ')} |`).join('\n')}\n`
}

function rowCells(setting, hasEnv) {
  const path = `\`${setting.path.join('.')}\``
  const env = hasEnv ? [setting.env === undefined ? '' : `\`${setting.env}\``] : []
  const bounds = boundsOf(setting.node)
  return [path, ...env, defaultOf(setting), `${setting.node.description ?? ''}${bounds === '' ? '' : ` ${bounds}.`}`]
}

function defaultOf({ node, isRequired, within }) {
  if (node.const !== undefined) return `choose \`${node.const}\``
  if (isRequired) return within === undefined ? 'required' : `required in \`${within}\``
  if (node.default === undefined) return 'none'
  return node.default === '' ? 'empty' : `\`${plain(node.default)}\``
}

function boundsOf(node) {
  if (node.enum !== undefined) return `One of ${node.enum.map((choice) => `\`${choice}\``).join(', ')}`
  if (node.items?.enum !== undefined) return `Some of ${node.items.enum.map((choice) => `\`${choice}\``).join(', ')}`
  if (node.type !== 'integer' && node.type !== 'number') return ''
  const low = node.exclusiveMinimum === undefined ? `${grouped(node.minimum)}` : `above ${node.exclusiveMinimum}`
  const high = node.exclusiveMaximum === undefined ? `to ${grouped(node.maximum)}` : `to below ${node.exclusiveMaximum}`
  return `${low} ${high}`.replace(/^./, (letter) => letter.toUpperCase())
}

const plain = (value) => (value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value))

const grouped = (number) => number.toLocaleString('en-US')

/** Variables of compose.yaml that are no settings of Spillway: name, default there, meaning. */
export const COMPOSE_VARIABLES = [
  ['BALANCER_PORT', '8080', 'Port of the balancer on this machine’s loopback.'],
  ['MINIMAL_PORT', '8081', 'Port of the one gateway of "docker compose up minimal".'],
  ['PROMETHEUS_PORT', '9090', 'Port of Prometheus.'],
  ['GRAFANA_PORT', '3000', 'Port of Grafana.'],
  ['POSTGRES_PASSWORD', 'spillway', 'Password of the database, which only containers reach.'],
  ['GRAFANA_PASSWORD', 'spillway', 'Password of Grafana’s administrator; everybody may look.'],
  ['SPILLWAY_BUILD_IMAGE', 'node:26-slim', 'Image in which Spillway’s image is built: Node 24 or newer with npm.'],
  ['SPILLWAY_RUN_IMAGE', 'debian:trixie-slim', 'Image that Spillway’s image stands on: glibc and libstdc++.'],
  ['SPILLWAY_IMAGE', 'spillway:local', 'Name of the image of gateways and engines.'],
  ['SPILLWAY_WHOLE_IMAGE', 'spillway:local-whole', 'Name of the image with embedder and embedded database.'],
  ['NPM_CONFIG_REGISTRY', '', 'Registry of packages while the image is built; npm’s own if empty.'],
  ['HAPROXY_IMAGE', 'haproxy:3.0', 'Image of the balancer.'],
  ['POSTGRES_IMAGE', 'pgvector/pgvector:pg17', 'Image of PostgreSQL with pgvector.'],
  ['REDIS_IMAGE', 'redis:8', 'Image of Redis; Valkey’s does as well.'],
  ['PROMETHEUS_IMAGE', 'prom/prometheus:v3.5.0', 'Image of Prometheus.'],
  ['GRAFANA_IMAGE', 'grafana/grafana:12.2.0', 'Image of Grafana.'],
  [
    'DEBIAN_IMAGE',
    'debian:trixie-slim',
    'Base of the services from Debian’s packages (deploy/compose/compose.debian.yaml).',
  ],
]

export function envExample() {
  const entries = settings
    .filter((setting) => setting.env !== undefined)
    .map(({ env, node }) => `# ${node.description}\n# ${env}=${plain(node.default)}\n`)
  return `# Copy to .env and take away the "#" where you want another value; the real environment wins over this file.
# Made from src/config/schema.ts by "npm run settings". Models, pools and tenants are written in the YAML file.

# YAML file with the settings; without one the demo runs.
# SPILLWAY_CONFIG=

${entries.join('\n')}
# ── Only for "docker compose up --build" (docs/operations/compose.md)

${COMPOSE_VARIABLES.map(([name, value, meaning]) => `# ${meaning}\n# ${name}=${value}\n`).join('\n')}`
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const root = join(dirname(fileURLToPath(import.meta.url)), '..')
  writeFileSync(join(root, PAGE_PATH), settingsPage())
  writeFileSync(join(root, ENV_PATH), envExample())
}
