import { execFile } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildConfig } from '../../src/config/load.ts'
import { type Served, serve } from '../../src/main/serve.ts'
import { missing, pathOf } from '../support/installed.ts'

/** The Locust example against the demo platform. */
const why = missing('locust')

describe.skipIf(why !== undefined)(`the Locust example${why === undefined ? '' : ` (${why})`}`, () => {
  let platform: Served
  beforeAll(async () => {
    const config = buildConfig(undefined, {}, { 'server.port': '0', 'logging.level': 'silent' })
    platform = await serve(config, { out: () => {}, err: () => {} })
  })
  afterAll(() => platform.close())

  async function runLocust(seconds: number) {
    const args = ['-f', 'examples/locust/locustfile.py', '--headless', '-H', platform.address, '--only-summary']
    // Many users of the tenant that has a rate limit: some must be told to come back.
    const load = [
      '-u',
      '30',
      '-r',
      '30',
      '-t',
      `${seconds}s`,
      '--keys',
      'initech=sk-demo-initech',
      '--output-tokens',
      '5',
    ]
    const { code, text } = await new Promise<{ code: number; text: string }>((resolve) => {
      execFile(
        pathOf('locust'),
        [...args, ...load],
        { timeout: 120_000, killSignal: 'SIGKILL' },
        (error, stdout, stderr) =>
          resolve({ code: error === null ? 0 : Number(error.code ?? 1), text: stdout + stderr }),
      )
    })
    const told = /(\d+) answered, (\d+) shed \(429 or 503\), (\d+) failed/.exec(text)?.slice(1).map(Number)
    const [answered = 0, shed = 0, failed = Number.NaN] = told ?? []
    return { code, text, answered, shed, failed }
  }

  it('counts what is shed as shed, and nothing as failed', async () => {
    let run = await runLocust(5)
    // Starting thirty users takes a busy machine longer than that: then it goes on until somebody was told to come back.
    if (run.answered <= 5 || run.shed === 0) run = await runLocust(40)
    const { code, text, answered, shed, failed } = run
    expect(answered).toBeGreaterThan(5)
    expect(shed).toBeGreaterThan(0)
    expect(failed).toBe(0)
    expect(text).toMatch(/TTFT +first token initech/)
    expect(code).toBe(0)
  }, 300_000)
})
