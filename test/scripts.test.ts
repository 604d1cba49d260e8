import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'

interface Bootstrap {
  readonly needsBootstrap: (root: string) => boolean
  readonly explainNpm: (said: string, root: string) => string
}
interface InstallLock {
  readonly takeLock: (path: string, options?: { onWait?: () => void }) => Promise<() => void>
}
interface FetchNode {
  readonly fetchNode: (
    root: string,
    options: { cache: string; name: string | undefined },
  ) => Promise<string | undefined>
}
interface LockCheck {
  readonly lockProblems: (lock: object) => string[]
}

const script = <T>(name: string) => import(new URL(`../scripts/${name}`, import.meta.url).href) as Promise<T>
const { needsBootstrap, explainNpm } = await script<Bootstrap>('bootstrap.mjs')
const { takeLock } = await script<InstallLock>('install-lock.mjs')
const { fetchNode } = await script<FetchNode>('fetch-node.mjs')
const { lockProblems } = await script<LockCheck>('lockcheck.mjs')

const folders: string[] = []
function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-scripts-'))
  folders.push(folder)
  return folder
}
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

describe('bootstrap', () => {
  it('is needed without node_modules or after the lockfile changed, not beside what others installed', () => {
    const root = makeFolder()
    writeFileSync(join(root, 'package-lock.json'), '{}')
    expect(needsBootstrap(root)).toBe(true)
    mkdirSync(join(root, 'node_modules'))
    expect(needsBootstrap(root)).toBe(false)
    writeFileSync(join(root, 'node_modules', '.spillway-lock-sha'), 'of another')
    expect(needsBootstrap(root)).toBe(true)
  })
  it.each([
    [
      'npm error code ENOTFOUND\nnpm error network request to https://x failed',
      /the npm registry cannot be reached\. Check the network/,
    ],
    ['npm error code ECONNREFUSED', /cannot be reached/],
    ['npm error code EACCES\nnpm error syscall mkdir', /no permission to write in there/],
    ['npm error code ENOSPC', /the disk is full/],
    [
      'npm error code E404\nnpm error 404 Not Found\nnpm error A complete log …',
      /npm ci failed \(E404; 404 Not Found\)/,
    ],
    ['', /it gave no reason/],
  ])('tells %j in one line', (said, line) => {
    expect(explainNpm(said, 'there')).toMatch(line)
    expect(explainNpm(said, 'there')).not.toContain('\n')
  })
})

describe('the install lock', () => {
  it('lets one in at a time', async () => {
    const path = join(makeFolder(), 'deep', 'lock')
    let inside = 0
    let insideMax = 0
    const one = async () => {
      const release = await takeLock(path)
      insideMax = Math.max(insideMax, ++inside)
      await new Promise((resolve) => setTimeout(resolve, 20))
      inside--
      release()
    }
    await Promise.all([one(), one(), one()])
    expect(insideMax).toBe(1)
    expect(existsSync(path)).toBe(false)
  })
  it.each([
    ['whose process is gone', JSON.stringify({ host: hostname(), pid: 2 ** 22 + 1 }), 10],
    ['that nobody has touched for long', JSON.stringify({ host: 'elsewhere', pid: 1 }), 60],
    ['that cannot be read', 'garbage', 10],
  ])('does not wait for one %s', async (_, owner, ageS) => {
    const path = join(makeFolder(), 'lock')
    writeFileSync(path, owner)
    const then = new Date(Date.now() - ageS * 1_000)
    utimesSync(path, then, then)
    let hasWaited = false
    const release = await takeLock(path, { onWait: () => (hasWaited = true) })
    expect(hasWaited).toBe(false)
    release()
  })
})

describe('the pinned Node of a package under an old one', () => {
  /** Stands in for npm: notes that it was called, and lays out a package as npm would, or fails. */
  function fakeNpm(script: string): { cache: string; root: string; calls: () => number; lastSaid: () => string } {
    const folder = makeFolder()
    writeFileSync(join(folder, 'npm'), `#!/bin/sh\necho called >>"${folder}/calls"\n${script}\n`, { mode: 0o755 })
    writeFileSync(join(folder, 'package.json'), '{"spillway":{"pinnedNode":"26.1.2"}}')
    vi.stubEnv('PATH', `${folder}:${process.env['PATH']}`)
    vi.stubEnv('npm_execpath', '')
    const said = vi.spyOn(process.stderr, 'write').mockReturnValue(true)
    const calls = () => readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n').length
    return { cache: join(folder, 'cache'), root: folder, calls, lastSaid: () => String(said.mock.lastCall?.[0]) }
  }
  afterEach(() => {
    vi.unstubAllEnvs()
    vi.restoreAllMocks()
  })
  const LAYS_OUT = 'mkdir -p "$3/node_modules/node-x/bin" && : >"$3/node_modules/node-x/bin/node"'

  it.skipIf(process.platform === 'win32')('is fetched once, into the cache, also when two ask at once', async () => {
    const { cache, root, calls } = fakeNpm(LAYS_OUT)
    const wanted = join(cache, 'node-26.1.2', 'node_modules', 'node-x', 'bin', 'node')
    const both = [fetchNode(root, { cache, name: 'node-x' }), fetchNode(root, { cache, name: 'node-x' })]
    expect(await Promise.all(both)).toEqual([wanted, wanted])
    expect(calls()).toBe(1)
  })
  it.skipIf(process.platform === 'win32')('is not there when npm fails, and is asked for again', async () => {
    const { cache, root, lastSaid } = fakeNpm('exit 7')
    expect(await fetchNode(root, { cache, name: 'node-x' })).toBeUndefined()
    expect(lastSaid()).toMatch(/npm ended with 7.*Install Node 24/)
    writeFileSync(join(root, 'npm'), `#!/bin/sh\n${LAYS_OUT}\n`, { mode: 0o755 })
    expect(await fetchNode(root, { cache, name: 'node-x' })).toContain('node-26.1.2')
  })
  it('is not looked for where nobody offers one', async () => {
    expect(await fetchNode('/no/such/root', { cache: '/no/such/cache', name: undefined })).toBeUndefined()
  })
})

describe('lockcheck', () => {
  const lock = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8')) as object
  it('finds the lockfile good', () => expect(lockProblems(lock)).toEqual([]))
  it.each([
    ['lacks an entry', { '': { optionalDependencies: { b: '1' } } }, 'the project lacks an entry for b'],
    [
      'lacks a nested entry',
      {
        'node_modules/a': { integrity: 'x', optionalDependencies: { b: '1' } },
        'node_modules/c/node_modules/b': { integrity: 'x' },
      },
      'node_modules/a lacks an entry for b',
    ],
    [
      'names an address',
      { 'node_modules/a': { integrity: 'x', resolved: 'https://m' } },
      'node_modules/a names a download address (https://m)',
    ],
    ['has no hash', { 'node_modules/a': {} }, 'node_modules/a has no integrity hash'],
    [
      'runs a script',
      { 'node_modules/a': { integrity: 'x', hasInstallScript: true } },
      'node_modules/a has an install script',
    ],
  ])('says when it %s', (_, packages, problem) => expect(lockProblems({ packages })).toEqual([problem]))
  it('looks where Node looks', () => {
    const packages = {
      'node_modules/a/node_modules/c': { integrity: 'x', optionalDependencies: { b: '1', d: '1' } },
      'node_modules/a/node_modules/b': { integrity: 'x' },
      'node_modules/d': { integrity: 'x' },
    }
    expect(lockProblems({ packages })).toEqual([])
  })
})

describe('.ci/run', () => {
  it('names no host: packages come from where this machine gets them', () => {
    const lines = readFileSync(new URL('../.ci/run', import.meta.url), 'utf8').split('\n')
    expect(lines.filter((line) => /:\/\/|\b[\w-]+\.(com|org|net|io|dev)\b/i.test(line))).toEqual([])
  })
})
