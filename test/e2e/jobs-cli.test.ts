import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../../src/cli/run-cli.ts'
import { TestFolder } from '../support/child.ts'
import { jobLines } from '../support/job-gateway.ts'
import { ACME_KEY, GLOBEX_KEY, startPlatform, type TestPlatform } from '../support/start-platform.ts'

/** `spillway jobs …` as a person types it, against a server that runs. */
const folder = new TestFolder()
let platform: TestPlatform
beforeAll(async () => {
  platform = await startPlatform()
}, 60_000)
afterAll(async () => {
  await platform?.close()
  folder.remove()
})

async function typed(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const [out, err]: [string[], string[]] = [[], []]
  const code = await runCli(['jobs', ...words, '--url', platform.address], {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}

const acme = ['--key', ACME_KEY]

describe('jobs on the command line', () => {
  it('are submitted, watched and listed', { timeout: 60_000 }, async () => {
    const file = folder.write('asked.jsonl', [...jobLines(7)].join('\n'))
    const watched = await typed('submit', file, '--watch', ...acme)
    expect(watched).toMatchObject({
      code: 0,
      out: expect.stringContaining('7 of 7 lines answered, 0 failed') as string,
    })
    const [job] = JSON.parse((await typed('list', '--json', ...acme)).out) as { id: string; status: string }[]
    expect(job?.status).toBe('completed')
    expect((await typed('list', ...acme)).out).toContain(job?.id)
    const again = await typed('watch', job?.id ?? '', '--json', ...acme)
    expect(JSON.parse(again.out)).toMatchObject({ id: job?.id, request_counts: { total: 7, completed: 7, failed: 0 } })
    expect((await typed('cancel', job?.id ?? '', ...acme)).out).toContain('completed')
    expect((await typed('list', '--key', GLOBEX_KEY)).out).toContain('No job yet')
  })

  it('tell what is wrong with a file, and with what was typed', { timeout: 60_000 }, async () => {
    const file = folder.write('broken.jsonl', `${[...jobLines(1)].join('\n')}\nnot json`)
    const failed = await typed('submit', file, '--watch', ...acme)
    expect(failed.code).toBe(1)
    expect(failed.out).toContain('line 2: invalid_json_line')
    expect(await typed('submit', `${folder.path}/none.jsonl`, ...acme)).toMatchObject({ code: 2 })
    expect((await typed('submit', ...acme)).err).toContain('which file?')
    expect((await typed('watch', 'batch_none', ...acme)).err).toContain("No batch found with id 'batch_none'")
    expect((await typed('submit', file, '--endpoint', '/v1/none', ...acme)).err).toContain("Invalid 'endpoint'")
  })
})
