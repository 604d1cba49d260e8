import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, renameSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import packageJson from '../../package.json' with { type: 'json' }
import { Child, ROOT, TestFolder } from '../support/child.ts'
import { eventually } from '../support/eventually.ts'

/**
 * The package as npm installs it, in a folder without a checkout: JavaScript under `node_modules`. Its dependencies are
 * links to those of this checkout, because tests ask no registry.
 */
const folder = new TestFolder()
const smallFolder = new TestFolder()
let tarball = ''
const installed = (): string => join(folder.path, 'node_modules', 'spillway')
const launcher = (): string => join(installed(), 'bin', 'spillway.mjs')

const run = (...args: string[]): Child =>
  new Child({ args: [launcher(), ...args], cwd: folder.path, env: { NODE_COMPILE_CACHE: '' } })

/** Links to packages of this checkout, in a folder's node_modules. */
function link(target: string, names: readonly string[]): void {
  for (const name of names) {
    const path = join(target, 'node_modules', name)
    mkdirSync(dirname(path), { recursive: true })
    symlinkSync(join(ROOT, 'node_modules', name), path)
  }
}

const { dependencies, optionalDependencies } = packageJson
const partNames = Object.keys(optionalDependencies).filter((name) => name.startsWith('@'))

const makeStore = (address: string): Promise<Response> =>
  fetch(`${address}/v1/vector_stores`, {
    method: 'POST',
    headers: { authorization: 'Bearer sk-demo-acme', 'content-type': 'application/json' },
    body: '{"name":"a"}',
  })

async function streamedText(address: string): Promise<string> {
  const ai = new OpenAI({ baseURL: `${address}/v1`, apiKey: 'sk-demo-acme', maxRetries: 0 })
  const stream = await ai.chat.completions.create({
    model: 'spill-large',
    stream: true,
    max_tokens: 8,
    messages: [{ role: 'user', content: 'What is a weir? A weir holds water.' }],
  })
  let text = ''
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
  return text
}

beforeAll(() => {
  const out = join(folder.path, 'out')
  execFileSync(process.execPath, [join(ROOT, 'scripts', 'pack.mjs'), out], { stdio: 'pipe' })
  tarball = globSync('*.tgz', { cwd: out }).map((name) => join(out, name))[0] ?? ''
  mkdirSync(join(folder.path, 'node_modules'), { recursive: true })
  renameSync(join(out, 'package'), installed())
  link(folder.path, [...Object.keys(dependencies), ...partNames])
}, 120_000)
afterAll(() => {
  folder.remove()
  smallFolder.remove()
})

describe('the packed package', () => {
  it('is small, has no sources, no pinned Node and no address of a registry', () => {
    // Our own code and weights, about 1.6 MB: a pinned Node, sources beside their JavaScript or a folder of tests would show.
    expect(statSync(tarball).size).toBeLessThan(2_000_000)
    expect(globSync('**/*.ts', { cwd: installed() })).toEqual([])
    const manifest = JSON.parse(readFileSync(join(installed(), 'package.json'), 'utf8')) as Record<string, unknown>
    expect(manifest).toMatchObject({ name: 'spillway', engines: { node: '>=24' }, bin: packageJson.bin })
    expect(Object.keys(manifest['optionalDependencies'] as object)).toEqual(partNames)
    for (const gone of ['private', 'devDependencies', 'scripts']) expect(manifest[gone], gone).toBeUndefined()
    expect(existsSync(join(installed(), 'package-lock.json'))).toBe(false)
  })

  it('names its own files in JavaScript only', () => {
    const wrong = globSync('src/**/*.js', { cwd: installed() }).filter((name) =>
      /^import [^\n]*'\.[^'\n]*\.ts'/m.test(readFileSync(join(installed(), name), 'utf8')),
    )
    expect(wrong).toEqual([])
  })

  it('has every line where its source has it, and no documenting comments', () => {
    const countLines = (path: string) => readFileSync(path, 'utf8').split('\n').length
    const files = globSync('src/**/*.js', { cwd: installed() })
    expect(files.length).toBeGreaterThan(1_000)
    const moved = files.filter((name) => {
      const source = join(ROOT, name.replace(/\.js$/, '.ts'))
      return existsSync(source) && countLines(source) !== countLines(join(installed(), name))
    })
    expect(moved).toEqual([])
    expect(readFileSync(join(installed(), 'src', 'lifecycle', 'serve-request.js'), 'utf8')).not.toContain('/**')
  })

  it('serves the demo, streams an answer and shows the console', async () => {
    const child = run('serve')
    try {
      const address = await child.address(60_000)
      expect((await streamedText(address)).length).toBeGreaterThan(0)
      for (const page of ['/console', '/console/app.js', '/console/vendor/preact.js', '/console/vendor/uplot.css'])
        expect((await fetch(address + page)).status, page).toBe(200)
      // Worker threads are files of the package, too: the database's and the embedder's.
      const store = await makeStore(address)
      expect(store.status, await store.text()).toBe(200)
    } finally {
      await child.end()
    }
  }, 120_000)

  it('simulates a scenario that came with it', async () => {
    const child = run('simulate', 'baseline')
    expect(await child.exited(90_000), child.err).toBe(0)
    expect(child.out).toContain('holds')
  }, 120_000)

  it('serves the demo without its optional parts, and says what to install where one is wanted', async () => {
    // Beside the other folder: Node looks for packages in the folders above, too.
    const small = smallFolder.path
    cpSync(installed(), join(small, 'node_modules', 'spillway'), { recursive: true })
    link(small, Object.keys(dependencies))
    const child = new Child({
      args: [join(small, 'node_modules', 'spillway', 'bin', 'spillway.mjs'), 'serve'],
      cwd: small,
      env: { NODE_COMPILE_CACHE: '' },
    })
    try {
      const address = await child.address(60_000)
      expect((await streamedText(address)).length).toBeGreaterThan(0)
      const store = await makeStore(address)
      expect(store.status).toBe(503)
      expect(await store.text()).toContain('The embedded database is not installed')
      expect(child.err).toContain('@electric-sql/pglite is not there')
      expect(child.err).toContain('npm install --include=optional')
      expect(child.err).not.toContain('    at ')
    } finally {
      await child.end()
    }
  }, 120_000)

  it('says whether a service is ready, for the health check of a container', async () => {
    const child = run('serve')
    const health = (...args: string[]) =>
      new Child({ args: [join(installed(), 'scripts', 'health.mjs'), ...args], cwd: folder.path })
    try {
      const address = await child.address(60_000)
      await eventually('it is ready', async () => (await fetch(`${address}/health/ready`)).status === 200, 60_000)
      const ready = health(`${address}/health/ready`)
      expect(await ready.exited(30_000)).toBe(0)
      expect(ready.out).toContain('"status":"ready"')
      expect(await health(`${address}/nowhere`).exited(30_000)).toBe(1)
    } finally {
      await child.end()
    }
    const gone = health('http://127.0.0.1:1/health/ready')
    expect(await gone.exited(30_000)).toBe(1)
    expect(gone.out).toContain('ECONNREFUSED')
  }, 120_000)
})
