/**
 * What does a start cost? CPU time (user and system, all threads and processes) of a gateway from its first instruction
 * until it listens and until three seconds later, the wall time until it listens, and its resident memory then. A bare
 * relay of node:http and undici is the control: what the runtime itself costs on this machine.
 *
 *     node bench/load/start.ts                     five starts of each, the median of each figure; about two minutes
 *     node bench/load/start.ts --runs 9 --only default,relay
 *     node bench/load/start.ts --tree DIR          another checkout of the project
 *
 *   default   `npm start` in an empty folder: demo tenants and simulated engines
 *   again     the same in a folder that was used before: the embedded database exists
 *   engines   the file of README's "Your own engines", with two engines that answer on loopback
 *   test      what most tests in test/e2e start: one engine behind a URL, the store in memory, no ledger
 *   relay     the control
 *
 * One start before the measured ones fills Node's compile cache, as for every operator after the first start. Linux.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { STORE_PATH } from '../../src/config/defaults.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import { cpuSeconds, residentMemory } from './gateway-overhead/process-tree.ts'
import { takeFreePort } from './gateway-overhead/tools.ts'

interface Start {
  readonly readySeconds: number
  readonly settledSeconds: number
  readonly wallSeconds: number
  readonly residentMb: number
}

interface Case {
  readonly name: string
  readonly command: (dir: string, port: string) => readonly string[]
  /** The folder outlives one start, and has an embedded database from the first one on. */
  readonly isFolderKept?: boolean
}

/** What a start began in the background has ended by then. */
const SETTLE_MS = 3_000
/** The settings of this shell must not decide what is measured. */
const ENV = { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', LOG_LEVEL: 'silent' }
const LOOK_EVERY_MS = 10
/** A start takes seconds on a busy machine; one that takes this long hangs. */
const READY_MS_MAX = 60_000

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '5' },
    tree: { type: 'string', default: join(import.meta.dirname, '..', '..') },
    only: { type: 'string', default: 'default,again,engines,test,relay' },
  },
})
const tree = resolve(values.tree)
const launcher = [process.execPath, join(tree, 'bin', 'spillway.mjs'), 'serve']
const relay = join(import.meta.dirname, 'gateway-overhead', 'bare-relay.ts')

/** Engines that say which model they have, and nothing else: nothing is generated here. */
const engine = createServer((_, response) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify({ object: 'list', data: [{ id: 'meta-llama/Llama-3.1-8B-Instruct', object: 'model' }] }))
}).listen(0, '127.0.0.1')
await once(engine, 'listening')
const engineUrl = `http://127.0.0.1:${(engine.address() as AddressInfo).port}/v1`

const keys = [{ id: 'prod', hash: hashKey('sk-bench-start') }]
/** README, "Your own engines". The addresses are another spelling of one server, because replicas are distinct. */
const engines = {
  models: [{ name: 'llama', contextTokensMax: 131_072 }],
  pools: [
    {
      model: 'llama',
      backend: { kind: 'http-openai', upstreamModel: 'meta-llama/Llama-3.1-8B-Instruct' },
      replicas: [engineUrl, engineUrl.replace('127.0.0.1', 'localhost')],
    },
  ],
  tenants: [{ id: 'search', weight: 3, keys }],
}
/** `upstreamTree` and `startPlatform` of test/support/start-platform.ts. */
const test = {
  logging: { level: 'silent' },
  store: { path: 'memory:' },
  ledger: { enabled: false },
  models: [{ name: 'sim', aliases: ['gpt-4o-mini'] }],
  pools: [
    {
      model: 'sim',
      backend: { kind: 'http-openai', timeoutMs: 5_000 },
      replicas: [engineUrl],
      limit: { kind: 'fixed', concurrencyMax: 64 },
    },
  ],
  tenants: [
    { id: 'acme', slo: 'patient', keys: [{ id: 'acme-1', hash: hashKey('sk-test-acme') }] },
    { id: 'globex', slo: 'patient', keys: [{ id: 'globex-1', hash: hashKey('sk-test-globex') }] },
  ],
}

const withoutFile: Case['command'] = (_, port) => [...launcher, '--port', port]

/** JSON is YAML too. */
function withFile(tree: object): Case['command'] {
  return (dir, port) => {
    const file = join(dir, 'spillway.yaml')
    writeFileSync(file, JSON.stringify(tree))
    return [...launcher, '--port', port, '--config', file]
  }
}

const CASES: readonly Case[] = [
  { name: 'default', command: withoutFile },
  { name: 'again', command: withoutFile, isFolderKept: true },
  { name: 'engines', command: withFile(engines) },
  { name: 'test', command: withFile(test) },
  { name: 'relay', command: (_, port) => [process.execPath, relay, port, '1'] },
]

/** Anything that listens, without a word of HTTP to it: a request would load code that a start does not need. */
async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

async function startOnce({ command }: Case, dir: string): Promise<Start> {
  const port = await takeFreePort()
  const [program = '', ...args] = command(dir, String(port))
  const beganAt = performance.now()
  const child = spawn(program, args, { cwd: dir, env: ENV, stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = once(child, 'exit')
  const pid = child.pid ?? 0
  try {
    while (!(await isListening(port))) {
      if (child.exitCode !== null) throw new Error(`it ended with ${child.exitCode}: ${program} ${args.join(' ')}`)
      if (performance.now() - beganAt > READY_MS_MAX) throw new Error(`it does not listen: ${args.join(' ')}`)
      await sleep(LOOK_EVERY_MS)
    }
    const readySeconds = cpuSeconds(pid)
    const wallSeconds = (performance.now() - beganAt) / 1_000
    await sleep(SETTLE_MS)
    const settledSeconds = cpuSeconds(pid)
    return { readySeconds, settledSeconds, wallSeconds, residentMb: residentMemory(pid).treeMb }
  } finally {
    // Gently: Node writes its compile cache when it ends.
    child.kill('SIGTERM')
    await ended
  }
}

async function startsOf(one: Case, runs: number): Promise<readonly Start[]> {
  const starts: Start[] = []
  let kept: string | undefined
  for (let run = 0; run <= runs; run++) {
    const dir = kept ?? mkdtempSync(join(tmpdir(), 'spillway-start-'))
    try {
      if (one.isFolderKept) mkdirSync(join(dir, STORE_PATH), { recursive: true })
      starts.push(await startOnce(one, dir))
      if (one.isFolderKept) kept = dir
    } finally {
      if (kept === undefined) rmSync(dir, { recursive: true, force: true })
    }
  }
  if (kept !== undefined) rmSync(kept, { recursive: true, force: true })
  return starts.slice(1)
}

function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

const runs = Number(values.runs)
const wanted = new Set(values.only.split(','))
process.stdout.write('case        CPU s ready   CPU s +3 s (least)   wall s   RSS MB\n')
for (const one of CASES.filter(({ name }) => wanted.has(name))) {
  const starts = await startsOf(one, runs)
  const settled = starts.map(({ settledSeconds }) => settledSeconds)
  const cells = [
    one.name.padEnd(10),
    median(starts.map(({ readySeconds }) => readySeconds))
      .toFixed(2)
      .padStart(11),
    median(settled).toFixed(2).padStart(13),
    `(${Math.min(...settled).toFixed(2)})`.padStart(8),
    median(starts.map(({ wallSeconds }) => wallSeconds))
      .toFixed(2)
      .padStart(8),
    median(starts.map(({ residentMb }) => residentMb))
      .toFixed(0)
      .padStart(8),
  ]
  process.stdout.write(`${cells.join(' ')}\n`)
}
engine.close()
engine.closeAllConnections()
