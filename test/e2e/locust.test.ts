import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildConfig } from '../../src/config/load.ts'
import { type Served, serve } from '../../src/main/serve.ts'

/** The Locust example against the demo platform. Debian: `apt-get install python3-locust`. Required in CI only. */
const LOCUST = '/usr/bin/locust'
const isThere = existsSync(LOCUST)

it('locust is there when it must be', () => {
  const isRequired = process.env['CI'] !== undefined
  expect(isThere || !isRequired, 'locust is not installed: apt-get install python3-locust').toBe(true)
})

describe.skipIf(!isThere)('the Locust example (needs locust: apt-get install python3-locust)', () => {
  let platform: Served
  beforeAll(async () => {
    const config = buildConfig(undefined, {}, { 'server.port': '0', 'logging.level': 'silent' })
    platform = await serve(config, { out: () => {}, err: () => {} })
  })
  afterAll(() => platform.close())

  it('counts what is shed as shed, and nothing as failed', async () => {
    const args = ['-f', 'examples/locust/locustfile.py', '--headless', '-H', platform.address, '--only-summary']
    // Many users of the tenant that has a rate limit: some must be told to come back.
    const load = ['-u', '30', '-r', '30', '-t', '5s', '--keys', 'initech=sk-demo-initech', '--output-tokens', '5']
    const { code, text } = await new Promise<{ code: number; text: string }>((resolve) => {
      execFile(LOCUST, [...args, ...load], { timeout: 150_000, killSignal: 'SIGKILL' }, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), text: stdout + stderr }),
      )
    })
    const [, answered, shed, failed] = /(\d+) answered, (\d+) shed \(429 or 503\), (\d+) failed/.exec(text) ?? []
    expect(Number(answered)).toBeGreaterThan(5)
    expect(Number(shed)).toBeGreaterThan(0)
    expect(Number(failed)).toBe(0)
    expect(text).toMatch(/TTFT +first token initech/)
    expect(code).toBe(0)
  }, 180_000)
})
