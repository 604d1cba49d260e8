import { createServer } from 'node:net'
import { beforeEach, describe, expect, it } from 'vitest'
import { CopiedTree, LAUNCHER, LISTENING, nodes, type Program } from '../support/copied-tree.ts'

/** The program as a person starts it: signals through `npm start` and the launcher, and starts that fail. */
const tree = new CopiedTree()

describe('npm start', () => {
  let program: Program
  let address: string
  // Before the test: on a busy machine it takes longer than the test.
  beforeEach(async () => {
    program = tree.start('npm', ['start'])
    address = (await program.until(LISTENING))[1] ?? ''
  })

  it('serves, and ends when npm is told to end', async () => {
    expect((await fetch(`${address}/health`)).status).toBe(200)
    expect(program.said()).toContain('sk-demo-acme')
    program.child.kill('SIGTERM')
    await program.ended
    await expect(fetch(`${address}/health`)).rejects.toThrow('fetch failed')
  })

  it('ends once on Ctrl-C, which reaches every process of the group', async () => {
    process.kill(-(program.child.pid as number), 'SIGINT')
    await program.ended
    await expect(fetch(`${address}/health`)).rejects.toThrow('fetch failed')
  })
})

describe('the launcher', () => {
  it.each(nodes())('hands signals and the exit code on, started by %s', async (node) => {
    const program = tree.start(node, [LAUNCHER, 'serve'])
    await program.until(LISTENING)
    program.child.kill('SIGTERM')
    expect(await program.ended).toBe(0)
  })
})

describe('what goes wrong is one line', () => {
  it('a port in use', async () => {
    const busy = createServer()
    await new Promise<void>((resolve) => busy.listen(0, '127.0.0.1', resolve))
    const { port } = busy.address() as { port: number }
    expect(await tree.fail(['serve'], { PORT: String(port) })).toEqual({
      exitCode: 1,
      said: `spillway: port ${port} on 127.0.0.1 is in use. Stop what listens there, or choose another port with --port or PORT.\n`,
    })
    busy.close()
  })

  it('demo keys on an open address', async () => {
    const { exitCode, said } = await tree.fail(['serve'], { HOST: '0.0.0.0' })
    expect(exitCode).toBe(1)
    expect(said).toMatch(/^spillway: will not listen on 0\.0\.0\.0 with the demo keys[^\n]*\n$/)
  })
})
