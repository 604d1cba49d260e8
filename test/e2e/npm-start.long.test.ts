import { execFile } from 'node:child_process'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Child, TestFolder } from '../support/child.ts'
import { copyOfTree } from '../support/copy-of-tree.ts'
import { eventually } from '../support/eventually.ts'

/** As a person starts it: `npm start` in a clone, then what is on the screen is pasted into a shell. */

const folder = new TestFolder()
let child: Child
let address: string

const start = (env: Record<string, string> = {}): Child =>
  new Child({ command: 'npm', args: ['start'], cwd: folder.path, env, detached: true })

beforeAll(async () => {
  copyOfTree(folder.path)
  child = start()
  address = await child.address(60_000)
}, 120_000)
afterAll(async () => {
  await child.end()
  folder.remove()
})

/** Everything that can be pasted: what stands below "Try it:", one command between blank lines. */
function commands(): string[] {
  const [, below = ''] = child.out.split('Try it:')
  return below
    .split('\n\n')
    .map((text) => text.trim())
    .filter((text) => /^(curl|node) /.test(text))
}

function paste(command: string): Promise<{ out: string; err: string }> {
  return new Promise((resolve, reject) => {
    execFile('sh', ['-c', command], { cwd: folder.path, timeout: 60_000 }, (error, out, err) =>
      error === null ? resolve({ out, err }) : reject(new Error(`${command}\n${out}${err}`)),
    )
  })
}

describe('npm start', () => {
  it('says where it listens, who may call, and what to try', () => {
    expect(address).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    for (const word of ['spill-large', 'spill-small', 'acme', 'sk-demo-acme', 'globex', 'initech', '/metrics']) {
      expect(child.out).toContain(word)
    }
    expect(commands()).toHaveLength(3)
  })

  it('the first command answers', async () => {
    const { out } = await paste(commands()[0]!)
    expect(JSON.parse(out)).toMatchObject({ object: 'chat.completion', choices: [{ message: { role: 'assistant' } }] })
  })

  it('the second command streams', async () => {
    const { out } = await paste(commands()[1]!)
    expect(out.split('\n\n').length).toBeGreaterThan(5)
    expect(out).toMatch(/data: \[DONE\]\s*$/)
  })

  it('the third command prints a stream with Node alone, without a package', async () => {
    const { out, err } = await paste(commands()[2]!)
    expect(out).toContain('Simulated')
    expect(err).toBe('')
  })

  it('is alive, ready and measured', async () => {
    const paths = ['/health', '/health/ready', '/metrics', '/openapi.json']
    const statuses = await Promise.all(paths.map(async (path) => (await fetch(address + path)).status))
    expect(statuses).toEqual([200, 200, 401, 200])
    const [, scrape = ''] = /metrics +(curl .*)/.exec(child.out) ?? []
    expect((await paste(scrape)).out).toContain('spillway_requests_total')
  })

  it('each demo key opens it, and no other', async () => {
    const ask = (apiKey: string) =>
      new OpenAI({ baseURL: `${address}/v1`, apiKey, maxRetries: 0 }).chat.completions.create({
        model: 'spill-small',
        messages: [{ role: 'user', content: 'Hello there.' }],
        max_tokens: 4,
      })
    const keys = [...child.out.matchAll(/sk-demo-(?!admin)\w+/g)].map(([key]) => key)
    expect(new Set(keys).size).toBe(3)
    for (const key of new Set(keys)) expect((await ask(key)).choices).toHaveLength(1)
    // The admin's key changes the fleet, and asks nothing of it.
    await expect(ask('sk-demo-admin')).rejects.toMatchObject({ status: 401 })
    await expect(ask('sk-demo-nobody')).rejects.toMatchObject({ status: 401 })
  })

  it('a second one on the same port says so in one line', async () => {
    const second = start({ PORT: new URL(address).port })
    expect(await second.exited(60_000)).not.toBe(0)
    const ours = second.err.split('\n').filter((line) => line.startsWith('spillway:'))
    expect(ours).toHaveLength(1)
    expect(ours[0]).toContain('is in use')
    expect(second.err).not.toMatch(/^\s+at /m)
  })

  it('Ctrl-C, which reaches npm and the server at once, stops it gently', async () => {
    process.kill(-child.process.pid!, 'SIGINT')
    await child.exited(60_000)
    await eventually('nobody listens', () =>
      fetch(`${address}/health`).then(
        () => false,
        () => true,
      ),
    )
    expect(child.err).not.toMatch(/^\s+at /m)
  })
})
