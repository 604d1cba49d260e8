import { execFileSync, spawnSync } from 'node:child_process'
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { arrived, settled, story } from '../../test/support/entries.ts'
import { parseExposition, sampleValue } from '../../test/support/parse-exposition.ts'
import { makeLiveLog } from './live-log.ts'
import { makeLiveTelemetry } from './live-telemetry.ts'

const folder = mkdtempSync(join(tmpdir(), 'spillway-log-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** A named pipe with both ends open, so that neither waits for the other. */
function makePipe(name: string) {
  const path = join(folder, name)
  execFileSync('mkfifo', [path])
  const reader = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  const writer = openSync(path, constants.O_RDWR)
  const room = Buffer.alloc(1 << 20)
  const read = (): string => {
    try {
      return room.toString('utf8', 0, readSync(reader, room))
    } catch {
      return '' // Nothing there at the moment.
    }
  }
  const close = () => {
    closeSync(reader)
    closeSync(writer)
  }
  return { writer, read, close }
}

describe('makeLiveTelemetry', () => {
  it('delivers by itself, to metrics, memory and log', async () => {
    const lines: string[] = []
    const log = { write: (line: string) => void lines.push(line) }
    const telemetry = makeLiveTelemetry({ version: '1.2.3', log })
    for (const entry of story()) telemetry.journal.record(entry)
    expect(lines).toEqual([])
    await vi.waitFor(() => expect(lines.length).toBe(1))
    expect(telemetry.storyOf('req_1')?.length).toBe(5)
    const text = telemetry.metricsText()
    expect(sampleValue(text, 'spillway_build_info', { version: '1.2.3', node: process.version })).toBe(1)
    expect(sampleValue(text, 'spillway_journal_dropped_total', { subscriber: 'log' })).toBe(0)
    expect(sampleValue(text, 'process_resident_memory_bytes')).toBeGreaterThan(10_000_000)
    const samples = [...parseExposition(text).values()].flatMap((family) => family.samples)
    expect(samples.every((sample) => Number.isFinite(sample.value))).toBe(true)
  })

  it('tells whoever asks everything that has happened until then', () => {
    const telemetry = makeLiveTelemetry({ version: '1', log: { write: () => {} } })
    for (const entry of story()) telemetry.journal.record(entry)
    expect(telemetry.storyOf('req_1')?.length).toBe(5)
    telemetry.journal.record(arrived({ ticketId: 'req_2' }))
    expect(sampleValue(telemetry.metricsText(), 'spillway_requests_in_flight')).toBe(1)
  })

  it('delivers what is left when it is closed', async () => {
    const path = join(folder, 'log')
    const log = makeLiveLog(openSync(path, 'w'))
    const telemetry = makeLiveTelemetry({ version: '1', log, format: 'pretty' })
    for (let i = 0; i < 50; i++) telemetry.journal.record(settled({ ticketId: `t${i}` }))
    await telemetry.close()
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n')
    expect(lines.length).toBe(50)
    expect(lines[49]).toContain('ticket=t49')
  })
})

describe.runIf(process.platform === 'linux')('a log that nobody reads', () => {
  it('stops nothing, loses a counted number of lines, and goes on in order when somebody reads again', async () => {
    const pipe = makePipe('pipe')
    const telemetry = makeLiveTelemetry({ version: '1', log: makeLiveLog(pipe.writer), format: 'pretty' })
    const count = 10_000
    for (let i = 0; i < count; i++) {
      telemetry.journal.record(settled({ ticketId: `t${i}` }))
      if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    telemetry.journal.drain()
    const lost = telemetry.journal.view().find((view) => view.name === 'log')?.dropped ?? 0
    expect(lost).toBeGreaterThan(1_000)
    expect(telemetry.journal.view().find((view) => view.name === 'metrics')).toMatchObject({ taken: count, dropped: 0 })

    let text = ''
    const closed = telemetry.close()
    const isComplete = () => text.split('\n').length - 1 === count - lost
    for (let i = 0; i < 1_000 && !isComplete(); i++) {
      text += pipe.read()
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    await closed
    pipe.close()
    const tickets = [...text.matchAll(/ticket=t(\d+)/g)].map((match) => Number(match[1]))
    expect(tickets.length).toBe(count - lost)
    expect(tickets).toEqual(tickets.toSorted((a, b) => a - b))
  })

  it('does not keep the process from ending', () => {
    const pipe = makePipe('stuck')
    const script = `
      import { makeLiveLog } from ${JSON.stringify(new URL('live-log.ts', import.meta.url).href)}
      const log = makeLiveLog()
      log.write('x'.repeat(300_000))
      log.flush()
      setTimeout(() => process.exit(7), 50)`
    const child = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', pipe.writer, 'ignore'],
      timeout: 60_000,
    })
    pipe.close()
    expect(child.status).toBe(7)
  })
})

describe('arrivals alone', () => {
  it('show as in flight', async () => {
    const telemetry = makeLiveTelemetry({ version: '1', log: { write: () => {} } })
    telemetry.journal.record(arrived())
    await telemetry.close()
    expect(sampleValue(telemetry.metricsText(), 'spillway_requests_in_flight')).toBe(1)
  })
})
