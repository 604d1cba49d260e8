/**
 * What is measured. To add a target, add an entry: how to start it on a port in front of the fake upstream, which headers its
 * clients must send, and what must exist before it can run.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { installPortkey, isOnPath, outputOf, PORTKEY_START, portkeyVersion } from './tools.ts'

/** The key that every client sends; only Spillway looks at it. */
export const BENCH_KEY = 'sk-bench-0123456789'

const ROOT = join(import.meta.dirname, '../../..')
const SPILLWAY = join(ROOT, 'bin/spillway.mjs')

/** Where one target runs. */
export interface Place {
  readonly port: number
  readonly upstreamPort: number
  /** A folder of the run's own for configuration and scratch files. */
  readonly dir: string
  readonly descriptorsMax: number
}

export interface Target {
  readonly name: string
  readonly about: string
  /** Why it cannot run here, with what to do about it; undefined when it can. */
  missing(): string | undefined
  version(): string
  /** Brings in what the benchmark itself may fetch. */
  prepare?(): void
  /** Absent for direct: the client then talks to the upstream itself. */
  command?(place: Place): readonly string[]
  headers?(place: Place): readonly string[]
}

const direct: Target = {
  name: 'direct',
  about: 'the client talks to the fake upstream; everything "added" is counted from here',
  missing: () => undefined,
  version: () => '',
}

/** Buffering off and connections kept alive on both sides: how nginx is set up in front of engines that stream. */
const nginxConfig = (place: Place): string => `worker_processes 1; daemon off; pid nginx.pid;
worker_rlimit_nofile ${place.descriptorsMax};
events { worker_connections 16384; }
http {
  access_log off; tcp_nodelay on; keepalive_requests 100000000; keepalive_timeout 600s;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream engine {
    server 127.0.0.1:${place.upstreamPort};
    keepalive 1024; keepalive_requests 100000000; keepalive_timeout 600s;
  }
  server {
    listen 127.0.0.1:${place.port} backlog=4096;
    location / { proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; }
  }
}
`

const nginx: Target = {
  name: 'nginx',
  about: 'reverse proxy, one worker, buffering off, keep-alive on both sides',
  missing: () => (isOnPath('nginx') ? undefined : 'nginx is not installed (Debian: apt-get install nginx)'),
  // nginx prints its version to the error stream.
  version: () => outputOf(['sh', '-c', 'nginx -v 2>&1']).split('/').at(-1) ?? '',
  command: (place) => {
    const path = join(place.dir, 'nginx.conf')
    writeFileSync(path, nginxConfig(place))
    return ['nginx', '-p', place.dir, '-c', path, '-e', join(place.dir, 'nginx.log')]
  },
}

const portkey: Target = {
  name: 'portkey',
  about: "Portkey's gateway, @hono/node-server pinned to 1.13.8, without which it cannot stream",
  missing: () => undefined,
  version: portkeyVersion,
  prepare: installPortkey,
  command: (place) => [
    process.execPath,
    '--import',
    join(import.meta.dirname, 'portkey/loopback-only.mjs'),
    PORTKEY_START,
    `--port=${place.port}`,
    '--headless',
  ],
  headers: (place) => [
    'x-portkey-provider: openai',
    `x-portkey-custom-host: http://127.0.0.1:${place.upstreamPort}/v1`,
  ],
}

const relay: Target = {
  name: 'relay',
  about: 'bare node:http + undici relay with no gateway work: what Node itself costs',
  missing: () => undefined,
  version: () => process.version,
  command: (place) => [
    process.execPath,
    join(import.meta.dirname, 'bare-relay.ts'),
    String(place.port),
    String(place.upstreamPort),
  ],
}

/**
 * The limit is far above what any slice keeps in flight: this benchmark measures the path, not the refusals. The ledger
 * has a target of its own, because its embedded database works in the same process.
 */
const spillwayConfig = (
  place: Place,
  { server, ledger, more }: SpillwaySettings,
): string => `server: { host: 127.0.0.1, port: ${place.port}, ingress: { requestsPerMinute: 1000000000 }${server} }
ledger: ${ledger}
${more}store: { path: '${join(place.dir, 'store')}' }
models: [{ name: bench, contextTokensMax: 131072 }]
pools:
  - model: bench
    backend: { kind: http-openai, url: 'http://127.0.0.1:${place.upstreamPort}/v1' }
    replicas: 1
    limit: { kind: fixed, concurrencyMax: 20000 }
tenants:
  - id: bench
    keys: [{ id: bench, hash: 'sha256:${createHash('sha256').update(BENCH_KEY).digest('hex')}' }]
`

interface SpillwaySettings {
  /** Further settings of the server: `, name: value`. */
  readonly server: string
  readonly ledger: string
  /** Whole lines of further sections. */
  readonly more: string
}

const PLAIN: SpillwaySettings = { server: '', ledger: '{ enabled: false }', more: '' }

/** Spillway as it is, or with further settings. */
export const spillwayTarget = (name: string, about: string, settings: Partial<SpillwaySettings> = {}): Target => ({
  name,
  about,
  missing: () => (existsSync(SPILLWAY) ? undefined : 'bin/spillway.mjs does not exist in this tree'),
  version: () => String(JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version),
  command: (place) => {
    const path = join(place.dir, 'spillway.yaml')
    writeFileSync(path, spillwayConfig(place, { ...PLAIN, ...settings }))
    return [process.execPath, SPILLWAY, 'serve', '--config', path]
  },
})

const spillway = spillwayTarget('spillway', 'this project with its whole policy chain on, one tenant, one pool')

const fastPath = spillwayTarget('fast-path', 'the same with `server.fastPath`', {
  server: ', fastPath: true',
})
const ledger = spillwayTarget('ledger', 'the same with its ledger, in the embedded database', {
  ledger: '{ enabled: true }',
})
/** All embedded screens in both directions, none of which finds anything in what the client sends. */
const screened = spillwayTarget('screened', 'the same with rules and models that screen prompts and answers', {
  more: 'screening: { pii: redact, secrets: block, injection: flag, toxicity: flag }\n',
})

export const TARGETS: readonly Target[] = [direct, nginx, portkey, relay, spillway, fastPath, ledger, screened]
