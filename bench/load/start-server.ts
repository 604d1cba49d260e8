import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** A server of this project on a free port of loopback, for one measurement; `stop` ends it by its own process id. */
export interface StartedServer {
  readonly url: string
  readonly pid: number
  readonly stop: (signal: 'SIGTERM' | 'SIGKILL') => Promise<void>
}

export async function startServer(flags: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<StartedServer> {
  const cli = fileURLToPath(new URL('../../src/cli/cli.ts', import.meta.url))
  const child = spawn(process.execPath, [cli, 'serve', ...flags, '--port', '0'], {
    env: { ...process.env, LOG_LEVEL: 'silent', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  let said = ''
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString()
      const found = /listening on (http:\S+)/.exec(said)?.[1]
      if (found !== undefined) resolve(found)
    })
    void ended.then(() => reject(new Error(`the server ended: ${said}`)))
  })
  const stop = async (signal: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    child.kill(signal)
    await ended
  }
  return { url, pid: child.pid as number, stop }
}
