/** The upstream and all targets, up, checked and warm. */
import { readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { LoadClient, type Station } from './measure.ts'
import { residentMemory } from './process-tree.ts'
import { descriptorsLimit, start } from './processes.ts'
import { checkClient } from './self-check.ts'
import type { Target } from './targets.ts'
import { compilePrograms, takeFreePort } from './tools.ts'

export interface Arena {
  readonly client: LoadClient
  readonly stations: readonly Station[]
  readonly idleMb: Readonly<Record<string, number>>
}

/** Embedded stores may take seconds to come up on a busy machine. */
const READY_WITHIN_MS = 30_000
const READY_EVERY_MS = 150
/**
 * V8 optimises hot code step by step: a relay of a hundred lines is done after a few thousand calls, a platform after
 * a hundred thousand. Cold figures would compare start-ups, so everybody gets as much as the slowest to warm needs.
 */
const WARM_UP: readonly (readonly string[])[] = [
  ['-c', '64', '-n', '150000', '-t', '25'],
  ['-c', '16', '-n', '4000', '-t', '3', '-s', '-k', '50', '-i', '0'],
]

const lastLines = (path: string): string => readFileSync(path, 'utf8').trim().split('\n').slice(-8).join('\n')

/** Waits for one good whole answer, then demands one intact stream. */
async function waitUntilReady(client: LoadClient, station: Station): Promise<void> {
  const { running } = station
  const giveUpAt = performance.now() + READY_WITHIN_MS
  let seen = 'no connection'
  for (;;) {
    if (running !== undefined && (running.child.exitCode !== null || running.child.signalCode !== null))
      throw new Error(`${station.name} ended at its start:\n${lastLines(running.stderrPath)}`)
    const result = await client.run(station, ['-c', '1', '-n', '1', '-t', '2', '-g', '2'])
    if (result.ok === 1) break
    if (result.bad > 0) seen = `${result.badStatus} ${result.badBody.slice(0, 300)}`
    if (performance.now() > giveUpAt) {
      const said = running === undefined ? '' : `\n${lastLines(running.stderrPath)}`
      throw new Error(`${station.name} gave no good answer within ${READY_WITHIN_MS / 1000} s; last: ${seen}${said}`)
    }
    await sleep(READY_EVERY_MS)
  }
  const stream = await client.run(station, ['-c', '1', '-n', '1', '-t', '5', '-s', '-k', '5', '-i', '10'])
  if (stream.ok !== 1 || stream.lost > 0 || stream.disordered > 0)
    throw new Error(`${station.name} does not relay a stream intact: ${JSON.stringify(stream)}`)
}

/**
 * Each target gets an upstream of its own, the same program on the same core: idle connections that one proxy keeps then
 * neither use up the descriptors of another's upstream nor are looked through for it.
 */
async function startTarget(target: Target, upstreamProgram: string, dir: string): Promise<Station> {
  const own = join(dir, target.name)
  await mkdir(own)
  const upstreamPort = await takeFreePort()
  start('load', 'fake-upstream', [upstreamProgram, String(upstreamPort)], own)
  const port = target.command ? await takeFreePort() : upstreamPort
  const place = { port, upstreamPort, dir: own, descriptorsMax: descriptorsLimit() }
  const headers = target.headers?.(place) ?? []
  if (target.command === undefined) return { name: target.name, port, headers }
  return { name: target.name, port, headers, running: start('proxy', target.name, target.command(place), own) }
}

export async function openArena(
  targets: readonly Target[],
  dir: string,
  say: (what: string) => void,
  warmUp: readonly (readonly string[])[] = WARM_UP,
): Promise<Arena> {
  say('compiling')
  const programs = compilePrograms(dir)
  const client = new LoadClient(programs.client, dir)
  say('checking the load client')
  await checkClient(client)
  const stations: Station[] = []
  const idleMb: Record<string, number> = {}
  for (const target of targets) {
    say(`starting ${target.name}`)
    const station = await startTarget(target, programs.upstream, dir)
    await waitUntilReady(client, station)
    if (station.running) idleMb[target.name] = residentMemory(station.running.pid).treeMb
    stations.push(station)
  }
  for (const station of stations) {
    say(`warming up ${station.name}`)
    for (const args of warmUp) await client.run(station, args)
  }
  return { client, stations, idleMb }
}
