import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it, vi } from 'vitest'

interface Bootstrap {
  readonly needsBootstrap: (root: string) => boolean
  readonly explainNpm: (said: string, root: string) => string
}
interface Stamp {
  readonly hash: string
  readonly set: string
  readonly isAdding?: boolean
}
interface Sets {
  readonly packagesOfSet: (
    packages: object,
    set: string,
    here?: { platform: string; arch: string; libc?: string },
  ) => [string, { version: string }][]
  readonly readStamp: (root: string) => Stamp | undefined
  readonly writeStamp: (root: string, stamp: Stamp) => void
  readonly setBefore: (root: string) => string | undefined
  readonly setInstalledByHand: (root: string) => string | undefined
}
interface Size {
  readonly bytes: number
  readonly files: number
}
interface Progress {
  readonly EXPECTED: Readonly<Record<'production' | 'all', Size>>
  readonly fractionDone: (seen: Size & { packages: number }, expected: Size & { packages: number }) => number
  readonly secondsLeft: (fraction: number, from: number, elapsedS: number) => number | undefined
  readonly progressLine: (
    seen: Size & { packages: number },
    expected: Size & { packages: number },
    left?: number,
  ) => string
  readonly sizeOfPackage: (folder: string) => Size
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
interface Quick {
  readonly importGraph: (texts: readonly (readonly [string, string])[]) => object
  readonly testsFor: (
    graph: object,
    changed: readonly string[],
    max?: number,
  ) => { tests: readonly string[]; left: number }
}
interface LockCheck {
  readonly lockProblems: (lock: object) => string[]
}

const script = <T>(name: string) => import(new URL(`../scripts/${name}`, import.meta.url).href) as Promise<T>
const { needsBootstrap, explainNpm } = await script<Bootstrap>('bootstrap.mjs')
const { packagesOfSet, readStamp, setBefore, setInstalledByHand, writeStamp } = await script<Sets>('package-sets.mjs')
const { EXPECTED, fractionDone, progressLine, secondsLeft, sizeOfPackage } =
  await script<Progress>('install-progress.mjs')
const { deleteUnread } = await script<{ deleteUnread: (root: string, paths: readonly string[]) => void }>(
  'unread-files.mjs',
)
const { takeLock } = await script<InstallLock>('install-lock.mjs')
const { fetchNode } = await script<FetchNode>('fetch-node.mjs')
const { importGraph, testsFor } = await script<Quick>('quick.mjs')
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

describe('the sets of packages', () => {
  const packages = {
    '': {},
    'node_modules/a': { version: '1.0.0' },
    'node_modules/tool': { version: '2.0.0', dev: true },
    'node_modules/part': { version: '3.0.0', optional: true, os: ['linux'], cpu: ['x64'] },
    'node_modules/musl': { version: '3.0.0', optional: true, os: ['linux'], libc: ['musl'] },
    'node_modules/unix': { version: '3.0.0', optional: true, os: ['!win32'] },
  }
  function tree(...names: string[]): string {
    const root = makeFolder()
    writeFileSync(join(root, 'package-lock.json'), JSON.stringify({ packages }))
    for (const name of names) {
      const { version } = packages[`node_modules/${name}` as 'node_modules/a']
      mkdirSync(join(root, 'node_modules', name), { recursive: true })
      writeFileSync(join(root, 'node_modules', name, 'package.json'), JSON.stringify({ version }))
    }
    return root
  }
  const record = (root: string, of: object = { 'node_modules/a': {} }) =>
    writeFileSync(join(root, 'node_modules', '.package-lock.json'), JSON.stringify({ packages: of }))
  const names = (...args: Parameters<typeof packagesOfSet>) => packagesOfSet(...args).map(([path]) => path.slice(13))

  it('differ by the tools, and leave out what is for other platforms', () => {
    const here = { platform: 'linux', arch: 'x64', libc: 'glibc' }
    expect(names(packages, 'production', here)).toEqual(['a', 'part', 'unix'])
    expect(names(packages, 'all', here)).toEqual(['a', 'tool', 'part', 'unix'])
    expect(names(packages, 'all', { platform: 'win32', arch: 'x64' })).toEqual(['a', 'tool'])
  })
  it('are kept in the stamp; one of an earlier version stands for all', () => {
    const root = tree('a')
    expect(readStamp(root)).toBeUndefined()
    writeStamp(root, { hash: 'h', set: 'production', isAdding: true })
    expect(readStamp(root)).toEqual({ hash: 'h', set: 'production', isAdding: true })
    expect(setBefore(root)).toBe('all')
    writeStamp(root, { hash: 'h', set: 'production' })
    expect(readStamp(root)).toEqual({ hash: 'h', set: 'production', isAdding: false })
    expect(setBefore(root)).toBe('production')
    writeFileSync(join(root, 'node_modules', '.spillway-lock-sha'), 'h')
    expect(readStamp(root)).toMatchObject({ hash: 'h', set: 'all' })
  })
  it('are recognised when somebody else installed them, and only when whole', () => {
    const all = tree('a', 'tool')
    expect(setInstalledByHand(all), 'npm has not ended').toBeUndefined()
    record(all, { 'node_modules/tool': { dev: true } })
    expect(setInstalledByHand(all)).toBe('all')
    expect(setBefore(all)).toBe('all')
    writeFileSync(join(all, 'node_modules', 'tool', 'package.json'), '{"version":"1.9.9"}')
    expect(setInstalledByHand(all)).toBe('production')
    const none = tree('tool')
    record(none)
    expect(setInstalledByHand(none)).toBeUndefined()
  })
  it('are not recognised while packages are added', () => {
    const root = tree('a', 'tool')
    record(root)
    writeStamp(root, { hash: 'h', set: 'production', isAdding: true })
    expect(setInstalledByHand(root)).toBeUndefined()
  })
})

describe('the progress of an install', () => {
  const expected = { packages: 40, bytes: 300e6, files: 10_000 }
  it('is none at first, all at the end, and has no estimate before there is a pace', () => {
    expect(fractionDone({ packages: 0, bytes: 0, files: 0 }, expected)).toBe(0)
    expect(fractionDone({ packages: 41, bytes: 400e6, files: 10_000 }, expected)).toBe(1)
    expect(secondsLeft(0.05, 0, 3)).toBeUndefined()
    expect(secondsLeft(0.5, 0, 10)).toBe(10)
  })
  it('counts from what was there when packages are added', () => {
    expect(secondsLeft(0.5, 0.45, 10)).toBeUndefined()
    expect(secondsLeft(0.75, 0.5, 10)).toBe(10)
  })
  it('is one line of a narrow terminal, which never has more than it expects', () => {
    const line = progressLine({ packages: 24, bytes: 340e6, files: 1 }, expected, 6)
    expect(line).toBe('spillway: installing: 24 of 40 packages, 340 of 340 MB, about 6 s left')
    expect(line.length).toBeLessThan(80)
  })
  it('expects what npm unpacks here', () => {
    const root = new URL('..', import.meta.url).pathname
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as { packages: object }
    const sum = { bytes: 0, files: 0 }
    for (const [path] of packagesOfSet(packages, 'all')) {
      const { bytes, files } = sizeOfPackage(join(root, path))
      sum.bytes += bytes
      sum.files += files
    }
    // Unread files may have been deleted, and other platforms have other binaries.
    expect(sum.bytes / EXPECTED.all.bytes).toBeGreaterThan(0.8)
    expect(sum.bytes / EXPECTED.all.bytes).toBeLessThan(1.2)
    expect(sum.files / EXPECTED.all.files).toBeGreaterThan(0.7)
    expect(sum.files / EXPECTED.all.files).toBeLessThan(1.2)
  })
})

describe('unread files', () => {
  it('go, and what is imported stays', () => {
    const root = makeFolder()
    const folder = join(root, 'node_modules', 'gpt-tokenizer')
    const files = [
      'package.json',
      'cjs/a.js',
      'esm/bpeRanks/o200k_base.js',
      'esm/bpeRanks/p50k_base.js',
      'esm/a.js.map',
    ]
    for (const file of files) {
      mkdirSync(join(folder, file, '..'), { recursive: true })
      writeFileSync(join(folder, file), '')
    }
    deleteUnread(root, ['node_modules/gpt-tokenizer', 'node_modules/not-there'])
    const left = files.filter((file) => existsSync(join(folder, file)))
    expect(left).toEqual(['package.json', 'esm/bpeRanks/o200k_base.js'])
  })
})

describe('quick', () => {
  const graph = importGraph([
    ['src/a.ts', ''],
    ['src/b.ts', "import { a } from './a.ts'"],
    ['src/a.test.ts', "import { a } from './a.ts'"],
    ['src/b.test.ts', "import type { b } from './b.ts'"],
    ['src/c.test.ts', "const c = await import('./b.ts')"],
    ['src/d.test.ts', ''],
    ['test/support/child.ts', "import { spawn } from 'node:child_process'"],
    [
      'src/process.test.ts',
      "import './a.ts'\nimport { Child } from '../test/support/child.ts'\nimport { a } from './a.ts'",
    ],
    ['test/e2e/b.test.ts', "import { b } from '../../src/b.ts'"],
    ['src/b.long.test.ts', "import { b } from './b.ts'"],
  ])
  it('runs tests that reach the change and start no process, nearest first, and counts the others', () => {
    expect(testsFor(graph, ['src/a.ts'])).toEqual({
      tests: ['src/a.test.ts', 'src/b.test.ts', 'src/c.test.ts'],
      left: 3,
    })
    expect(testsFor(graph, ['src/a.ts'], 1)).toEqual({ tests: ['src/a.test.ts'], left: 5 })
  })
  it('runs a test that changed, and none for a page', () => {
    expect(testsFor(graph, ['src/d.test.ts', 'README.md'])).toEqual({ tests: ['src/d.test.ts'], left: 0 })
    expect(testsFor(graph, ['README.md'])).toEqual({ tests: [], left: 0 })
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
