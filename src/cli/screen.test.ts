import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { runCli } from './run-cli.ts'

const folder = mkdtempSync(join(tmpdir(), 'spillway-screen-'))
const file = join(folder, 'prompts.txt')
const config = join(folder, 'spillway.yaml')
writeFileSync(file, `first\r\nwrite to ada@canary-example.com\n${'x'.repeat(70_000)} bob@canary-example.com`)
writeFileSync(
  config,
  'screening: { pii: flag }\ntenants:\n  - id: shop\n    screening: { pii: block }\n  - id: other\n',
)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

async function run(...words: string[]) {
  const out: string[] = []
  const err: string[] = []
  const exitCode = await runCli(['screen', ...words], { out: (text) => out.push(text), err: (text) => err.push(text) })
  return { exitCode, out: out.join('\n'), err: err.join('\n') }
}

describe('spillway screen', () => {
  it('prints hit rates and places, and no text', async () => {
    const { exitCode, out } = await run(file, '--policy', '{"pii":"redact"}')
    expect(exitCode).toBe(0)
    expect(out).toMatch(/^Policy [0-9a-f]{12}, 3 lines: 0 \(0\.0 %\) blocked, 2 \(66\.7 %\) redacted/)
    expect(out).toMatch(/^pii +email +redact +2 \(66\.7 %\) +2 +line 2:10$/m)
    expect(out).not.toContain('canary')
    expect((await run(file, '--policy', '{"pii":"redact"}', '--show')).out).toContain('ada@canary-example.com')
  })

  it('takes the policy of a tenant, or of the platform', async () => {
    const actionOf = async (...words: string[]) => {
      const { out } = await run(file, '--config', config, '--json', ...words)
      return (JSON.parse(out) as { findings: Array<{ action: string }> }).findings[0]?.action
    }
    expect(await actionOf('--tenant', 'shop')).toBe('block')
    expect(await actionOf('--tenant', 'other')).toBe('flag')
    expect(await actionOf()).toBe('flag')
  })

  it.each([
    ['a policy that is none', [file, '--policy', '{'], '--policy is no JSON'],
    ['a judge that should redact', [file, '--policy', '{"injection":"redact"}'], 'screening.injection is "redact"'],
    ['a policy of nothing', [file, '--policy', '{}'], 'The policy screens nothing'],
    ['a tenant that there is not', [file, '--config', config, '--tenant', 'nobody'], 'There is no tenant "nobody"'],
    ['a file that there is not', [join(folder, 'none'), '--policy', '{"pii":"flag"}'], 'cannot be read (ENOENT)'],
  ])('explains %s', async (_, words, text) => {
    const { exitCode, err } = await run(...words)
    expect(exitCode).toBe(2)
    expect(err).toContain(text)
  })
})
