import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { flush } from './flush.ts'

/** Runs the program with its output in a pipe, as a shell does. */
function outputOf(words: readonly string[]): Promise<{ out: string; code: number | null }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'cli.ts'), ...words], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ out, code }))
  })
}

describe('flush', () => {
  it('loses nothing of an output that is larger than a pipe', { timeout: 60_000 }, async () => {
    const { out } = await outputOf([
      'simulate',
      'small-tenants',
      '--set',
      'warmupS=0',
      '--set',
      'durationS=3',
      '--json',
    ])
    expect(out.length).toBeGreaterThan(65_536)
    expect(JSON.parse(out)).toMatchObject({ scenario: 'small-tenants' })
  })

  it('waits for what was written before', async () => {
    const stream = new PassThrough({ highWaterMark: 4 })
    stream.write('more than the stream holds')
    let isFlushed = false
    const flushed = flush(stream).then(() => {
      isFlushed = true
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(isFlushed).toBe(false)
    stream.resume()
    await flushed
  })

  it('does not wait for a reader that has left', async () => {
    const stream = new PassThrough()
    stream.destroy()
    await expect(flush(stream)).resolves.toBeUndefined()
  })
})
