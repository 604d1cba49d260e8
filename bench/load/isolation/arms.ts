import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashKey } from '../../../src/config/key-hash.ts'
import { PROMISE } from './client.ts'
import { TENANTS } from './plan.ts'
import { freePort, type Processes } from './processes.ts'

/** What stands before the engines in a trial. Nothing is tuned to the load but what an arm's name says. */
export interface Arm {
  readonly name: string
  /** Why it cannot run here. */
  readonly missing?: () => string | undefined
  /** Starts it before the engines; its URLs get the requests in turn. */
  readonly start: (place: Place) => Promise<readonly string[]>
}

export interface Place {
  readonly processes: Processes
  readonly engines: readonly string[]
  readonly dir: string
  /** The tree whose Spillway is measured. */
  readonly tree: string
}

const spillway: Arm = {
  name: 'spillway',
  async start({ processes, engines, dir, tree }) {
    const path = join(dir, 'spillway.yaml')
    writeFileSync(path, JSON.stringify(configOf(engines)))
    return [await processes.startListening([join(tree, 'src/cli/cli.ts'), 'serve', '--config', path], dir)]
  },
}

const configOf = (engines: readonly string[]) => ({
  server: { host: '127.0.0.1', port: 0, ingress: { requestsPerMinute: 1e9 } },
  store: { path: 'memory:' },
  models: [{ name: 'm', contextTokensMax: 8_192 }],
  pools: [{ model: 'm', backend: { kind: 'http-openai' }, replicas: engines.map((url) => `${url}/v1`) }],
  slos: [{ name: 'people', ...PROMISE }],
  tenants: TENANTS.map((id) => ({ id, slo: 'people', keys: [{ id: `key-${id}`, hash: hashKey(`sk-${id}`) }] })),
})

/** A limit of connections for each key and for all: what an operator without a gateway would write. */
const limitConn = (perKey: number, all: number): Arm => ({
  name: `nginx ${perKey} a key, ${all} in all`,
  missing: () =>
    spawnSync('nginx', ['-v']).status === 0 ? undefined : 'nginx is not installed (Debian: apt-get install nginx)',
  async start({ processes, engines, dir }) {
    const port = await freePort()
    const path = join(dir, 'nginx.conf')
    writeFileSync(path, nginxConfig(port, engines, { perKey, all }))
    const command = ['nginx', '-p', dir, '-c', path, '-e', join(dir, 'nginx.log')]
    return [await processes.startOn(port, command, dir)]
  },
})

const nginxConfig = (port: number, engines: readonly string[], limits: { perKey: number; all: number }): string => `
worker_processes 1; daemon off; pid nginx.pid; worker_rlimit_nofile 16384;
events { worker_connections 8192; }
http {
  access_log off; tcp_nodelay on; client_body_buffer_size 256k;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  limit_conn_zone $server_name zone=all:1m; limit_conn_zone $http_authorization zone=key:1m; limit_conn_status 429;
  upstream engines { least_conn; ${engines.map((url) => `server ${new URL(url).host} max_fails=0;`).join(' ')} keepalive 512; }
  server {
    listen 127.0.0.1:${port} backlog=4096; server_name gateway;
    location / {
      limit_conn all ${limits.all}; limit_conn key ${limits.perKey};
      proxy_pass http://engines; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Authorization "";
      proxy_buffering off; proxy_read_timeout 120s;
    }
  }
}
`

/** One relay before each engine: no limits, no order, the engines' own queues. */
const relay: Arm = {
  name: 'bare relay',
  async start({ processes, engines, dir }) {
    const program = join(import.meta.dirname, '../gateway-overhead/bare-relay.ts')
    const startOne = async (engine: string): Promise<string> => {
      const port = await freePort()
      const command = [process.execPath, program, String(port), new URL(engine).port]
      return processes.startOn(port, command, dir)
    }
    return Promise.all(engines.map(startOne))
  },
}

export const ARMS: readonly Arm[] = [spillway, limitConn(64, 128), relay]
