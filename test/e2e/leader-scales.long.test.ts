import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { Child, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'
import { FakeUpstream } from '../support/fake-upstream.ts'
import { pairTree, saysOfLeader } from '../support/gateway-pair.ts'
import { missing } from '../support/installed.ts'
import { startPostgres } from '../support/servers.ts'
import { authorization, METRICS_KEY, MODEL } from '../support/start-platform.ts'

/**
 * Two gateways as processes of their own, on one PostgreSQL server: the leader is killed while its command brings a pool from
 * one replica to three. The command goes on without it, as one that was started does, and heeds the fence.
 */
const folder = new TestFolder()
const closers: Array<() => unknown> = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
}, 60_000)
afterAll(() => folder.remove())

/** Notes the order, waits while a file says so, and carries the order out unless a later leader has ordered meanwhile. */
const COMMAND = `
const fs = require('node:fs')
const { SPILLWAY_FENCE: fence, SPILLWAY_REPLICAS_FROM: from, SPILLWAY_REPLICAS_TO: to } = process.env
const [folder] = process.argv.slice(1)
const note = (file, text) => fs.appendFileSync(folder + '/' + file, text + '\\n')
const newest = () => Math.max(...fs.readFileSync(folder + '/ordered', 'utf8').trim().split('\\n').map((line) => Number(line.split(' ')[0])))
note('ordered', fence + ' ' + from + ' ' + to)
const wait = setInterval(() => {
  if (fs.existsSync(folder + '/hold')) return
  clearInterval(wait)
  if (Number(fence) < newest()) return note('refused', fence)
  fs.writeFileSync(folder + '/count', to)
  note('done', fence + ' ' + to)
}, 50)
`

const linesOf = (name: string): string[] => {
  const path = join(folder.path, name)
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []
}

async function startGateway(config: string): Promise<{ readonly child: Child; readonly address: string }> {
  const child = new Child({ env: { SPILLWAY_CONFIG: config } })
  closers.push(() => child.end())
  return { child, address: await child.address(120_000) }
}

const why = missing('postgresql')
describe.skipIf(why !== undefined)('a leader that scales', () => {
  it('and is killed meanwhile is followed by one that brings the pool where it is wanted, once', {
    timeout: 240_000,
  }, async () => {
    const postgres = await startPostgres()
    closers.push(() => postgres.close())
    const engines = await Promise.all([0, 1, 2].map(() => FakeUpstream.start()))
    closers.push(() => Promise.all(engines.map((engine) => engine.close())))
    writeFileSync(join(folder.path, 'count'), '1')
    writeFileSync(join(folder.path, 'hold'), '')
    closers.push(() => rmSync(join(folder.path, 'hold'), { force: true }))
    // Engines are there by the number that was carried out last.
    const carry = (): void => {
      const count = Number(readFileSync(join(folder.path, 'count'), 'utf8'))
      for (const [i, engine] of engines.entries()) engine.isHealthy = i < count
    }
    carry()
    const actuator = {
      kind: 'command',
      command: [process.execPath, '-e', COMMAND, folder.path],
      timeoutMs: 60_000,
    }
    const pool = {
      id: 'pool',
      model: MODEL,
      backend: { kind: 'http-openai' },
      replicas: engines.map(({ url }) => url),
      limit: { kind: 'fixed', concurrencyMax: 8 },
      autoscale: { writer: 'spillway', minWarm: 3, max: 3, coldStartMs: 60_000, actuator },
    }
    const config = folder.write('spillway.yaml', pairTree(postgres.url, { pools: [pool] }))
    const leader = await startGateway(config)
    await eventually('it has ordered', () => linesOf('ordered').length === 1, 60_000)
    const other = await startGateway(config)
    await eventually('it follows', async () => (await saysOfLeader(other.address)) === 'another gateway leads', 60_000)
    expect(linesOf('ordered')).toEqual(['1 1 3'])

    leader.child.signal('SIGKILL')
    await leader.child.exited(60_000)
    await eventually('the other one orders', () => linesOf('ordered').length === 2, 60_000)
    expect(await saysOfLeader(other.address)).toBe('this gateway leads')
    rmSync(join(folder.path, 'hold'))
    await eventually('both commands have ended', () => linesOf('done').length + linesOf('refused').length === 2, 60_000)
    carry()
    const ready = async (): Promise<number> => {
      const answer = await fetch(`${other.address}/autoscale/pool`, { headers: authorization(METRICS_KEY) })
      return ((await answer.json()) as { ready: number }).ready
    }
    await eventually('three are ready', async () => (await ready()) === 3, 60_000)
    expect(linesOf('ordered')).toEqual(['1 1 3', '2 1 3'])
    expect([linesOf('done'), linesOf('refused')]).toEqual([['2 3'], ['1']])
  })
})
