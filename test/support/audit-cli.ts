import { runCli } from '../../src/cli/run-cli.ts'

/** Runs a command as a person would; answers its exit code and what it printed. */
export async function cli(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const [out, err]: [string[], string[]] = [[], []]
  const code = await runCli(words, { out: (text) => out.push(text), err: (text) => err.push(text) })
  return { code, out: out.join('\n'), err: err.join('\n') }
}
