import { runCli } from '../../src/cli/run-cli.ts'

/** The key of the administrator whose commands `spillway` runs. */
export const ADMIN_KEY = 'sk-test-admin'

/** Runs a command of the CLI in this process against the gateway at this address, as an administrator. */
export async function spillway(
  address: string,
  ...words: string[]
): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const code = await runCli([...words, '--url', address, '--key', ADMIN_KEY], {
    out: (text) => out.push(text),
    err: (text) => err.push(text),
  })
  return { code, out: out.join('\n'), err: err.join('\n') }
}
