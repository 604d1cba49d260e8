import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../../src/cli/run-cli.ts'
import { hashKey } from '../../src/config/key-hash.ts'
import type { StoreTwinKeeper } from '../../src/control/store-twin-keeper.ts'
import { speedOfPrior } from '../../src/policy/twin/speed-of-prior.ts'
import { eventually } from '../support/eventually.ts'
import { MODEL, postJson, startPlatform, type TestPlatform, testTree } from '../support/start-platform.ts'

/** `spillway engine learned …` as a person types it, against a server that has learned of its engine. */
const ADMIN_KEY = 'sk-test-admin'
const POOL = 'learning'
const folder = mkdtempSync(join(tmpdir(), 'spillway-learned-'))
let platform: TestPlatform

const ask = { model: MODEL, messages: [{ role: 'user', content: 'Tell me a story.' }], max_tokens: 400, stream: true }

const startLearning = (): Promise<TestPlatform> =>
  startPlatform(
    testTree({
      admin: { keys: [{ id: 'ada', hash: hashKey(ADMIN_KEY) }] },
      models: [{ name: MODEL }, { name: 'other' }],
      pools: [
        { id: POOL, model: MODEL, backend: { kind: 'simulated', profile: 'h100-llama-1b', hidden: true } },
        { id: 'declared', model: 'other', backend: { kind: 'simulated', profile: 'h100-llama-1b' } },
      ],
      store: { path: join(folder, 'store') },
    }),
  )

const learnedBy = ({ platform }: TestPlatform) => platform.policies.poolsById.get(POOL)!.twins!.of(`${POOL}-0`)

beforeAll(async () => {
  platform = await startLearning()
  const learned = learnedBy(platform)
  for (let i = 0; i < 50 && !learned.twin.isTrusted; i++) {
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => postJson(`${platform.baseURL}/chat/completions`, ask)),
    )
    await Promise.all(answers.map((answer) => answer.text()))
  }
  await eventually('the engine has told its memory', () => learned.kv.capacity !== undefined)
}, 120_000)
afterAll(async () => {
  await platform.close()
  rmSync(folder, { recursive: true, force: true })
})

async function spillway(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const where = ['--url', platform.address, '--key', ADMIN_KEY]
  const code = await runCli([...words, ...(words[0] === 'simulate' ? [] : where)], {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

describe('what was learned of an engine', () => {
  it('is told in a table that lines up, and as JSON', async () => {
    const { code, out, err } = await spillway('engine', 'learned', POOL)
    expect([code, err]).toEqual([0, ''])
    const rows = out.split('\n')
    const column = rows[0]!.indexOf(`${POOL}-0`)
    for (const row of rows) expect(row.slice(column - 2, column + 1)).toMatch(/^ {2}\S$/)
    expect(out).toMatch(/^believed +yes$/m)
    expect(out).toMatch(/^ {2}\+ a sequence +[\d.]+ µs$/m)
    expect(out).toMatch(/^error of the time per token +[\d.]+ %$/m)
    expect(out).toMatch(/^KV memory +[\d,]+ tokens$/m)
    expect(out).toMatch(/^ {2}because +told by the engine$/m)
    const json = JSON.parse((await spillway('engine', 'learned', POOL, '--json')).out) as object
    expect(json).toMatchObject({ pool: POOL, isLearned: true, replicas: [{ id: `${POOL}-0`, isTrusted: true }] })
  })

  it('becomes a profile that the simulator runs', async () => {
    const path = join(folder, 'learned.json')
    const { code, out } = await spillway('engine', 'learned', POOL, '--write', path)
    expect(code).toBe(0)
    expect(out).toMatch(/^Wrote .*learned\.json, like \S+ but for its steps: within [\d.]+ %/m)
    expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
      name: `learned-${POOL}-0`,
      kvTokensMax: expect.any(Number) as number,
    })
    const scenario = join(folder, 'scenario.yaml')
    writeFileSync(
      scenario,
      `name: learned\nabout: a learned engine\ndurationS: 3\nplatform:\n  models: [{ name: m }]\n  pools: [{ model: m, backend: { kind: simulated, profile: ${path} } }]\n  tenants: [{ id: a }]\nworkload:\n  - { tenant: a, model: m, arrivals: { kind: poisson, ratePerS: 2 }, prompt: { kind: fixed, tokens: 100 }, output: { kind: fixed, tokens: 20 } }\n`,
    )
    const simulated = await spillway('simulate', scenario, '--json')
    expect([simulated.code, simulated.err]).toEqual([0, ''])
  })

  it('is nothing where the steps are declared, and is refused where there is no such pool', async () => {
    expect((await spillway('engine', 'learned', 'declared')).out).toContain('nothing is learned')
    expect(await spillway('engine', 'learned', 'nowhere')).toMatchObject({
      code: 1,
      err: expect.stringContaining('There is no pool nowhere') as string,
    })
    expect(await spillway('engine', 'learned')).toMatchObject({ code: 2 })
    expect(await spillway('engine', 'learned', POOL, '--replica', 'x')).toMatchObject({ code: 2 })
    expect(await spillway('engine', 'learned', 'declared', '--write', join(folder, 'x.json'))).toMatchObject({
      code: 2,
    })
    expect(await spillway('engine', 'learned', POOL, '--write', 'x.yaml')).toMatchObject({ code: 2 })
  })
  it('is known after a restart', { timeout: 120_000 }, async () => {
    const before = learnedBy(platform)
    const { decode, read } = before.twin.view()
    const ceiling = before.ceiling.sequencesMax
    const { twinKeeper } = platform.platform.world
    // The embedded store is opened by the first write, which takes seconds on a busy machine.
    await eventually('it is kept', () => (twinKeeper as StoreTwinKeeper).writtenCount > 0, 60_000)
    await platform.close()
    platform = await startLearning()
    const { twin, ...after } = learnedBy(platform)
    await eventually('it is recalled', () => twin.view().prior.endsWith(', from before the restart'), 60_000)
    // Nothing but prices that were learned to be none differs, and those by a tenth of a percent of the whole.
    const near = speedOfPrior({ decode, read, tokenBudget: twin.tokenBudget })
    expect(Math.abs(twin.meanTokenUs(8, 4_000, 100) / near.meanTokenUs(8, 4_000, 100) - 1)).toBeLessThan(0.02)
    expect(Math.abs(twin.prefillUs(300, 0) / near.prefillUs(300, 0) - 1)).toBeLessThan(0.02)
    expect([after.ceiling.sequencesMax, after.ceiling.because]).toEqual([ceiling, 'from before the restart'])
    expect((await spillway('engine', 'learned', POOL)).out).toMatch(
      /^thought to be like +\S+, from before the restart$/m,
    )
  })
})
