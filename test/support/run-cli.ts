import { runCli } from '../../src/cli/run-cli.ts'

/** Runs a command of the CLI in this process: its exit code, and what it said on either stream. */
export async function run(...words: string[]): Promise<{ code: number; said: string }> {
  let said = ''
  const say = (line: string): void => {
    said += `${line}\n`
  }
  const code = await runCli(words, { out: say, err: say } as never)
  return { code, said }
}
