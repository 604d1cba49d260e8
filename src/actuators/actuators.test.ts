import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../base/clock.ts'
import { LiveClock } from '../base/live-clock.ts'
import type { ScaleOrder } from '../lifecycle/autoscale-ports.ts'
import { DcgmUse, meanUse } from './http-dcgm.ts'
import { KubernetesScale } from './http-kubernetes-scale.ts'
import { ScaleWebhook } from './http-scale-webhook.ts'
import { ScaleCommand } from './live-command.ts'

/** Pauses between tries take no time here. */
const clock: Clock = Object.assign(Object.create(new LiveClock()) as Clock, { sleep: () => Promise.resolve() })

const ORDER: ScaleOrder = {
  poolId: 'chat-local',
  from: 1,
  to: 3,
  leaving: [],
  fence: { name: 'cell', holder: 'gw_1', number: 7 },
  because: 'more replicas are needed',
}

/** A command that fails. */
const EXIT_AND_NOTE = 'process.exit(1)'

type Answer = { readonly status: number; readonly body?: unknown }
type Handler = (req: IncomingMessage, body: string) => Answer

let folder: string
let server: Server
let handle: Handler
let url: string

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'spillway-actuators-'))
  writeFileSync(join(folder, 'token'), 'secret-token\n')
  server = createServer((req, res) => {
    const parts: Buffer[] = []
    req.on('data', (part: Buffer) => parts.push(part))
    req.on('end', () => {
      const { status, body } = handle(req, Buffer.concat(parts).toString())
      res.writeHead(status, { 'content-type': 'application/json' })
      res.end(typeof body === 'string' ? body : JSON.stringify(body ?? {}))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterEach(async () => {
  await new Promise((resolve) => server.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

/**
 * The scale subresource as the API's description has it (autoscaling/v1 Scale; optimistic concurrency by resourceVersion:
 * a write with an old one is answered 409 Conflict).
 */
class ScaleStub {
  replicas: number | undefined
  version = 41
  writes = 0
  /** Called before each write is looked at. */
  onWrite: () => void = () => {}

  constructor(replicas: number | undefined) {
    this.replicas = replicas
  }

  answer(req: IncomingMessage, body: string): Answer {
    if (req.headers.authorization !== 'Bearer secret-token') return { status: 401 }
    if (req.url !== '/apis/apps/v1/namespaces/default/deployments/vllm/scale') return { status: 404 }
    if (req.method === 'GET') return { status: 200, body: this.#scale() }
    this.onWrite()
    const told = JSON.parse(body) as { kind: string; metadata: { resourceVersion: string }; spec: { replicas: number } }
    if (told.kind !== 'Scale' || !Number.isInteger(told.spec.replicas)) return { status: 422 }
    if (told.metadata.resourceVersion !== String(this.version)) return { status: 409 }
    this.writes++
    this.version++
    this.replicas = told.spec.replicas
    return { status: 200, body: this.#scale() }
  }

  #scale() {
    return {
      kind: 'Scale',
      apiVersion: 'autoscaling/v1',
      metadata: { name: 'vllm', namespace: 'default', resourceVersion: String(this.version) },
      // Zero is left out, as Go does it.
      spec: this.replicas === undefined || this.replicas === 0 ? {} : { replicas: this.replicas },
      status: { replicas: this.replicas ?? 0 },
    }
  }
}

const kubernetes = (more: object = {}) =>
  new KubernetesScale({
    clock,
    apiUrl: url,
    resource: 'apps/v1/deployments',
    namespace: 'default',
    name: 'vllm',
    tokenFile: join(folder, 'token'),
    caFile: undefined,
    timeoutMs: 2_000,
    ...more,
  })

describe('an order that is over', () => {
  it.each([
    ['webhook', () => new ScaleWebhook({ clock, url, timeoutMs: 5_000, tokenFile: undefined })],
    ['Kubernetes', () => kubernetes()],
    ['command', () => new ScaleCommand({ clock, command: [process.execPath, '-e', EXIT_AND_NOTE], timeoutMs: 20_000 })],
  ])('is tried no further: %s', async (_, make) => {
    let tries = 0
    handle = () => {
      tries++
      return { status: 503 }
    }
    const answer = await make().scale(ORDER, () => true)
    expect(answer).toMatchObject({ kind: 'failed', because: expect.stringMatching(/another gateway may order now$/) })
    expect(tries).toBeLessThanOrEqual(1)
  })
})

describe('the scale subresource', () => {
  it('is read, and written with its resourceVersion', async () => {
    const stub = new ScaleStub(0)
    handle = (req, body) => stub.answer(req, body)
    const actuator = kubernetes()
    expect(await actuator.read()).toBe(0)
    expect(await actuator.scale(ORDER)).toEqual({ kind: 'done' })
    expect([stub.replicas, stub.writes, await actuator.read()]).toEqual([3, 1, 3])
    // The same number again writes nothing.
    expect(await actuator.scale(ORDER)).toEqual({ kind: 'done' })
    expect(stub.writes).toBe(1)
  })

  it('is read again when somebody wrote in between, and says that another one writes', async () => {
    const stub = new ScaleStub(1)
    handle = (req, body) => stub.answer(req, body)
    const actuator = kubernetes()
    await actuator.scale({ ...ORDER, to: 2 })
    let isFirst = true
    stub.onWrite = () => {
      if (!isFirst) return
      isFirst = false
      stub.version++
      stub.replicas = 9
    }
    const answer = await actuator.scale(ORDER)
    expect(answer).toMatchObject({ kind: 'done', note: expect.stringContaining('found 9 where 2 was written') })
    expect(stub.replicas).toBe(3)
  })

  it('fails in bounded tries, with a reason and without a secret', async () => {
    let asked = 0
    handle = () => {
      asked++
      return { status: 503 }
    }
    const away = await kubernetes().scale(ORDER)
    expect(away).toEqual({ kind: 'failed', because: 'the API server answered 503, 3 times in a row' })
    expect(asked).toBe(3)
    handle = () => ({ status: 403 })
    expect(await kubernetes().scale(ORDER)).toEqual({ kind: 'failed', because: 'the API server answered 403' })
    handle = () => ({ status: 200, body: 'no json' })
    expect(await kubernetes().scale(ORDER)).toMatchObject({ kind: 'failed' })
    expect(await kubernetes().read()).toBeUndefined()
    expect(JSON.stringify(await kubernetes({ tokenFile: join(folder, 'none') }).scale(ORDER))).toContain('ENOENT')
  })
})

describe('a webhook', () => {
  it('is told the order, and tried again when it was unlucky', async () => {
    const told: unknown[] = []
    handle = (req, body) => {
      told.push([req.method, req.headers.authorization, JSON.parse(body)])
      return { status: told.length === 1 ? 502 : 204 }
    }
    const actuator = new ScaleWebhook({ clock, url, tokenFile: join(folder, 'token'), timeoutMs: 2_000 })
    expect(await actuator.scale({ ...ORDER, to: 0, leaving: ['a'] })).toEqual({ kind: 'done' })
    const body = { pool: 'chat-local', from: 1, to: 0, leaving: ['a'], fence: 7, because: ORDER.because }
    expect(told).toEqual([
      ['POST', 'Bearer secret-token', body],
      ['POST', 'Bearer secret-token', body],
    ])
  })

  it('follows no redirect', async () => {
    handle = () => ({ status: 302 })
    const actuator = new ScaleWebhook({ clock, url, tokenFile: undefined, timeoutMs: 2_000 })
    expect(await actuator.scale(ORDER)).toEqual({ kind: 'failed', because: 'the webhook answered 302' })
  })
})

describe('a command', () => {
  const run = (code: string, order = ORDER, timeoutMs = 5_000) =>
    new ScaleCommand({ clock, command: [process.execPath, '-e', code], timeoutMs }).scale(order)

  it('finds the order in its environment', async () => {
    const out = join(folder, 'out')
    const names = ['POOL', 'REPLICAS_FROM', 'REPLICAS_TO', 'LEAVING', 'FENCE', 'BECAUSE']
    const code = `require('fs').writeFileSync(${JSON.stringify(out)}, JSON.stringify(${JSON.stringify(names)}.map((n) => process.env['SPILLWAY_' + n])))`
    expect(await run(code, { ...ORDER, leaving: ['a', 'b'] })).toEqual({ kind: 'done' })
    expect(JSON.parse(readFileSync(out, 'utf8'))).toEqual(['chat-local', '1', '3', 'a\nb', '7', ORDER.because])
  })

  it('fails with what it said, after three tries', async () => {
    const out = join(folder, 'tries')
    const code = `require('fs').appendFileSync(${JSON.stringify(out)}, 'x'); console.error('no quota'); process.exit(3)`
    const answer = await run(code)
    expect(answer).toEqual({ kind: 'failed', because: 'the command ended with 3: no quota, 3 times in a row' })
    expect(readFileSync(out, 'utf8')).toBe('xxx')
  })

  it('is ended when its time is over, and not run when it is not there', async () => {
    expect(await run('setInterval(() => {}, 1000)', ORDER, 200)).toMatchObject({
      kind: 'failed',
      because: expect.stringContaining('was ended by SIGTERM'),
    })
    const none = new ScaleCommand({ clock, command: [join(folder, 'none')], timeoutMs: 1_000 })
    expect(await none.scale(ORDER)).toMatchObject({ kind: 'failed', because: expect.stringContaining('ENOENT') })
  })
})

describe('a DCGM exporter', () => {
  const TEXT = [
    '# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).',
    '# TYPE DCGM_FI_DEV_GPU_UTIL gauge',
    'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",pod="vllm-0"} 80',
    'DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b",pod="vllm-1"} 40',
    'DCGM_FI_DEV_MEM_COPY_UTIL{gpu="0"} 5',
  ].join('\n')

  it('tells the mean use of its GPUs', () => {
    expect(meanUse(TEXT)).toBe(0.6)
    expect(meanUse('DCGM_FI_DEV_GPU_UTIL NaN')).toBeUndefined()
    expect(meanUse('')).toBeUndefined()
  })

  it('is asked behind the scenes, seldom, and is not believed for long', async () => {
    let asked = 0
    let answered: (() => void) | undefined
    const whenAnswered = new Promise<void>((resolve) => {
      answered = resolve
    })
    handle = () => {
      asked++
      return { status: 200, body: TEXT }
    }
    let now = 0
    const at = Object.assign(Object.create(clock) as Clock, {
      now: () => {
        if (asked > 0) answered?.()
        return now
      },
    })
    const use = new DcgmUse(at, url)
    expect(use.ratio()).toBeUndefined()
    await whenAnswered
    await Promise.resolve()
    now = 9_000_000
    expect([use.ratio(), asked]).toEqual([0.6, 1])
    handle = () => ({ status: 500 })
    now = 31_000_000
    expect(use.ratio()).toBeUndefined()
  })
})
