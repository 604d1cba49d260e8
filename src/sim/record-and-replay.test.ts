import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import type { Arrived, Entry, Settled } from '../domain/entry.ts'
import { Recorder } from '../telemetry/recorder.ts'
import { checkScenario } from './scenario/fs-scenario.ts'
import { withTraceTenants } from './scenario/scenario-trace.ts'
import { simulate } from './simulate.ts'
import { openTrace } from './traces/fs-trace.ts'

/** A simulated day is recorded, and the recording is played: the same requests come at the same distances. */
const folder = mkdtempSync(join(tmpdir(), 'spillway-round-trip-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const stream = (tenant: string, more: object) => ({
  tenant,
  model: 'chat',
  arrivals: { kind: 'poisson', ratePerS: 3 },
  prompt: { kind: 'uniform', min: 200, max: 900 },
  output: { kind: 'uniform', min: 5, max: 80 },
  ...more,
})

const TREE = {
  name: 'round-trip',
  about: '',
  durationS: 30,
  platform: {
    models: [{ name: 'chat' }, { name: 'small' }],
    pools: [
      { model: 'chat', backend: { kind: 'simulated', profile: 'h100-llama-8b' }, replicas: 2 },
      { model: 'small', backend: { kind: 'simulated', profile: 'h100-llama-1b' } },
    ],
    tenants: [
      { id: 'a', slo: 'patient' },
      { id: 'b', slo: 'patient' },
    ],
  },
  workload: [
    stream('a', {
      band: 'interactive',
      maxTokens: 100,
      conversations: 3,
      prefix: { tokens: 160, groups: 2, ratio: 1 },
    }),
    stream('b', { model: 'small' }),
  ],
}

const file = { path: 'test', tree: TREE, lineOf: () => undefined }

async function play(trace?: string) {
  const entries: Entry[] = []
  const opened = trace === undefined ? undefined : openTrace(trace)
  const scenario = checkScenario(file, opened === undefined ? TREE : withTraceTenants(TREE, opened))
  await simulate(scenario, { seed: 1, trace: opened?.requests(), onEntry: (entry) => entries.push(entry) })
  return entries
}

function record(entries: readonly Entry[]): string {
  const lines: string[] = []
  const renaming = { blocks: (hashes: readonly number[]) => [...hashes], session: (hash: number) => hash }
  const recorder = new Recorder({ renaming })
  const stop = recorder.begin({ write: (line) => lines.push(line) > 0 }, 0)
  for (const entry of entries) recorder.take(entry)
  stop?.()
  const path = join(folder, `recording-${lines.length}.jsonl`)
  writeFileSync(path, lines.join(''))
  return path
}

function asksOf(entries: readonly Entry[]) {
  const settled = new Map(
    entries.flatMap((entry) => (entry.kind === 'settled' ? [[entry.ticketId, entry] as const] : [])),
  )
  const arrivals = entries.filter((entry): entry is Arrived => entry.kind === 'arrived')
  const firstAt = arrivals[0]?.at ?? 0
  return arrivals.map(({ at, ticketId, tenantId, model, band, promptTokens, shape }) => {
    const { usage, outcome } = settled.get(ticketId) as Settled
    return {
      atUs: at - firstAt,
      tenantId,
      model,
      band,
      promptTokens,
      shape,
      outcome,
      outputTokens: usage.outputTokens,
    }
  })
}

it('plays what it recorded: arrivals, tenants, models, lengths, prefixes, sessions', { timeout: 30_000 }, async () => {
  const first = await play()
  const path = record(first)
  const again = await play(path)
  const asked = asksOf(first)
  expect(asked.length).toBeGreaterThan(100)
  expect(new Set(asked.map(({ outcome }) => outcome))).toEqual(new Set(['completed']))
  expect(asksOf(again)).toEqual(asked)
  // And the recording of the replay is the recording, but for the instant at which the first request came.
  const read = (each: string) => [...openTrace(each).requests()].map((request) => ({ ...request, asked: undefined }))
  expect(read(record(again))).toEqual(read(path))
})
