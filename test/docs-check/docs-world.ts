import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { hashKey } from '../../src/config/key-hash.ts'
import { ROOT } from '../support/child.ts'
import { copyOfTree } from '../support/copy-of-tree.ts'
import { FILE_TENANT, type Served } from './plans.ts'
import { type Bounds, type Ran, runShell, Shell } from './run-shell.ts'

/**
 * Where the commands of the documentation run: a copy of the project as a reader would have cloned it, so that what they
 * write is no part of ours; a gateway of the demo; a gateway and an engine with the names that the recipes use. Everything
 * is on loopback and on free ports.
 */
export interface DocsWorld {
  readonly served: Served
  readonly enginePort: number
  /** Long commands that have begun already, without the values of their options. */
  readonly begun: Set<string>
  /** Whether the traces are the public ones, and not a few lines in their place. */
  readonly hasTraces: boolean
  /** Processor seconds of making it. */
  readonly cpuSeconds: () => number
  readonly place: (server: 'demo' | 'file' | undefined) => { cwd: string; env: Record<string, string> }
  /** The configuration that a page shows, under the name that its commands give it. */
  readonly writeConfig: (page: string, line: number, name: string) => void
  readonly close: () => Promise<void>
}

const ADMIN_KEY = 'sk-docs-check-admin'
export const BOUNDS: Bounds = { cpuSeconds: 40, wallSeconds: 600 }
const READY = /listen(?:s|ing) on http:\/\/\S+?:(\d+)/

/** `traces`: a folder with the public traces that results.md names. */
export async function makeDocsWorld(traces?: string): Promise<DocsWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-docs-check-'))
  const cwd = join(folder, 'spillway')
  mkdirSync(cwd)
  copyOfTree(cwd)
  // A clone has a history; the site lists its pages by it.
  execFileSync('git', ['init', '--quiet'], { cwd })
  writeInputs(cwd)
  if (traces !== undefined) for (const name of readdirSync(traces)) cpSync(join(traces, name), join(cwd, name))
  const env = baseEnvironment(folder, cwd)
  const servers: Shell[] = []
  const start = async (command: string, more: Record<string, string> = {}): Promise<number> => {
    const server = new Shell(command, { cwd, env: { ...env, PORT: '0', ...more } })
    servers.push(server)
    await server.until(BOUNDS, () => READY.test(server.out))
    const port = READY.exec(server.out)?.[1]
    if (port === undefined) throw new Error(`${command} is not ready: ${server.out}${server.err}`)
    return Number(port)
  }
  const close = async (): Promise<void> => {
    for (const server of servers.toReversed()) await server.end('SIGTERM')
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    const enginePort = await start('npx spillway engine --profile h100-llama-8b --model llama --port 0')
    const config = join(cwd, 'recipes.yaml')
    writeFileSync(config, stringify(recipesConfig(cwd, enginePort)))
    const file = { port: await start('npx spillway serve', { SPILLWAY_CONFIG: config }), config, poolId: 'llama-8b-1' }
    const port = await start('npx spillway serve', { SPILLWAY_STORE_PATH: join(cwd, 'demo-store') })
    const answered = await runShell(askOnce(port), { cwd, env }, BOUNDS)
    const requestId = /x-request-id: (\S+)/i.exec(answered.out)?.[1]
    if (requestId === undefined) throw new Error(`the demo does not answer: ${answered.out}${answered.err}`)
    const served: Served = { demo: { port, requestId }, file }
    const fileEnv = { ...env, PORT: String(file.port), SPILLWAY_CONFIG: config, SPILLWAY_ADMIN_KEY: ADMIN_KEY }
    return {
      served,
      enginePort,
      begun: new Set(),
      hasTraces: traces !== undefined,
      cpuSeconds: () => servers.reduce((sum, server) => sum + server.cpuSeconds(), 0),
      place: (server) => ({ cwd, env: server === 'file' ? fileEnv : { ...env, PORT: String(port) } }),
      writeConfig: (page, line, name) => writeFileSync(join(cwd, name), shownConfig(page, line, name)),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

/** The program by its own name and without npm, which takes longer than most commands. */
function baseEnvironment(folder: string, cwd: string): Record<string, string> {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  const npx = `#!/bin/sh
name=$1; shift
if [ "$name" = spillway ]; then exec node "${join(cwd, 'bin', 'spillway.mjs')}" "$@"; fi
exec "${join(ROOT, 'node_modules', '.bin')}/$name" "$@"
`
  writeFileSync(join(bin, 'npx'), npx, { mode: 0o755 })
  const path = [bin, join(ROOT, 'node_modules', '.bin'), process.env['PATH'] ?? ''].join(':')
  return { PATH: path, HOME: folder, NO_COLOR: '1' }
}

/** Files that the pages take as given: a recording, prompts, a scenario of the reader's own. */
function writeInputs(cwd: string): void {
  const rows = Array.from(
    { length: 40 },
    (_, i) => `2023-11-16 18:15:${String(i).padStart(2, '0')}.0000000,${300 + i},${20 + i}`,
  )
  const csv = ['TIMESTAMP,ContextTokens,GeneratedTokens', ...rows, ''].join('\n')
  mkdirSync(join(cwd, 'traces'))
  for (const name of ['azure-2023-conv-first30min.csv', 'azure-2023-code-first30min.csv', 'traces/conv.csv'])
    writeFileSync(join(cwd, name), csv)
  const calls = rows.map((_, i) => JSON.stringify({ t: i, tenant: `u${i % 3}`, input: 13 + i, output: 20 + i }))
  writeFileSync(join(cwd, 'vtc-real-trace.jsonl'), `${calls.join('\n')}\n`)
  writeFileSync(
    join(cwd, 'prompts.jsonl'),
    `${JSON.stringify({ prompt: 'Write to ann@example.com about the dam.' })}\n`,
  )
  const scenario = readFileSync(join(cwd, 'scenarios', 'baseline.yaml'), 'utf8')
  writeFileSync(join(cwd, 'my-day.yaml'), scenario.replaceAll(/\balpha\b/g, 'team-a'))
}

/** What the recipes call by name: a model with two releases, its pools, an administrator, an audit. */
function recipesConfig(cwd: string, enginePort: number): object {
  const pool = (release: string) => ({
    id: `llama-8b-${release}`,
    model: 'llama-8b',
    release,
    backend: { kind: 'http-openai', upstreamModel: 'llama' },
    replicas: [`http://127.0.0.1:${enginePort}/v1`],
  })
  return {
    admin: { keys: [{ id: 'docs-check', hash: hashKey(ADMIN_KEY) }] },
    store: { path: join(cwd, 'recipes-store') },
    audit: { enabled: true, path: join(cwd, 'recipes-audit') },
    models: [{ name: 'llama-8b', releases: [{ version: '1' }, { version: '2' }], rollout: { stable: '1' } }],
    pools: [pool('1'), pool('2')],
    tenants: [{ id: 'acme', keys: [{ id: 'acme-1', hash: hashKey(FILE_TENANT) }] }],
  }
}

const askOnce = (port: number): string =>
  `curl -sSi http://127.0.0.1:${port}/v1/chat/completions -H 'authorization: Bearer sk-demo-acme' ` +
  `-H 'content-type: application/json' -d '{"model":"spill-large","max_tokens":8,"messages":[{"role":"user","content":"A weir?"}]}'`

/** The YAML block that begins with `# NAME`, else the last one above the line. */
function shownConfig(page: string, line: number, name: string): string {
  const text = readFileSync(join(ROOT, page), 'utf8')
  const blocks = [...text.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(({ 1: yaml, index }) => ({
    yaml: yaml!,
    line: text.slice(0, index).split('\n').length,
  }))
  const named = blocks.find(({ yaml }) => yaml.startsWith(`# ${name}\n`))
  const shown = named ?? blocks.findLast((block) => block.line < line)
  if (shown === undefined) throw new Error(`${page}:${line}: no block shows ${name}`)
  // What stands beside the tenants of the reader gets one.
  const tenants = /^tenants:/m.test(shown.yaml)
    ? ''
    : 'tenants: [{ id: acme, keys: [{ id: prod, hash: "sha256:…" }] }]\n'
  return `${shown.yaml}${tenants}`
    .replaceAll('sha256:…', `sha256:${'0'.repeat(64)}`)
    .replaceAll(/http:\/\/(?:gpu-\d+|box|triton):\d+/g, 'http://127.0.0.1:1')
}

/** Waits until it is ready, then ends it as a supervisor does. */
export async function runServer(
  command: string,
  place: { cwd: string; env: Record<string, string> },
): Promise<Ran & { isReady: boolean }> {
  const server = new Shell(command, { cwd: place.cwd, env: { ...place.env, PORT: '0' } })
  await server.until(BOUNDS, () => READY.test(server.out))
  return { isReady: READY.test(server.out), ...(await server.end('SIGTERM')) }
}
