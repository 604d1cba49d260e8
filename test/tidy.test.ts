import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import {
  brokenLinks,
  codePaths,
  findCycles,
  hasHeader,
  longFunctions,
  matches,
  nameProblem,
  sharedNames,
  unreadable,
} from './support/tidy-checks.ts'
import { chainsTo, importProblems, judgeOutside, sourcePaths, unusedWords } from './support/tidy-folders.ts'
import {
  type Files,
  IMPORTS_THAT_BREAK,
  IMPORTS_THAT_PASS,
  NOT_RE_EXPORTS,
  NOT_TICKET_WRITES,
  OUTSIDE_THAT_BREAKS,
  OUTSIDE_THAT_PASSES,
  RE_EXPORTS,
  type Seed,
  TICKET_WRITES,
} from './support/tidy-seeds.ts'
import {
  EXCEPTIONS,
  FILE_LINES_MAX,
  FOLDERS,
  FUNCTION_LINES_MAX,
  NAMES_WITH_TWO_MEANINGS,
  NEEDS_HEADER,
  NEVER_BEHIND,
} from './support/tidy-tables.ts'
import { ticketWritesOf } from './support/tidy-tickets.ts'
import { makeTree, readTree, type Tree } from './support/tidy-tree.ts'

/**
 * Is the project still the one that the design describes? `support/tidy-tables.ts` says what is allowed. Every rule
 * brings seeded violations that the rule must catch, with words that its message must contain: a rule that cannot fail
 * proves nothing.
 */
interface Rule {
  readonly name: string
  readonly find: (tree: Tree) => string[]
  /** Trees that break the rule. */
  readonly seeds: readonly Seed[]
  /** Trees that keep the rule, though they look as if they broke it. */
  readonly clean?: readonly Files[]
}

/** The forbidden words are written in two parts, or this file would break its own rules. */
const LEFTOVERS = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK'].join('|')})\\b`, 'g')
const MACHINE_PATHS = new RegExp(
  `(?<![\\w.])/(${['wo' + 'rk', 'ro' + 'ot', 'tmp/bo' + 'ot'].join('|')})(/|\\b(?=["'\`\\s]))`,
  'g',
)
const REGISTRIES = new RegExp(['registry\\.np' + 'mjs', 'arti' + 'factory', 'verda' + 'ccio'].join('|'), 'gi')

const HEADER = '/**\n * What?\n * So.\n */\n'
const lines = (count: number) => 'x()\n'.repeat(count)
const isOutsideLifecycle = (path: string) => !path.startsWith('src/lifecycle/')

/** The check itself, what it asks, and the administrators' keys, which only tell a tenant's key from a wrong one. */
const LOOK_UP_KEYS: readonly string[] = [
  'src/gateway/check-call.ts',
  'src/gateway/authenticate.ts',
  'src/gateway/admin-directory.ts',
  'src/gateway/tenant-directory.ts',
]

const RULES: readonly Rule[] = [
  {
    name: 'every file can be read, and src is TypeScript, but for trained weights',
    find: (tree) => [
      ...unreadable(tree),
      ...tree.paths
        .filter(
          (path) =>
            path.startsWith('src/') && !/[^.]\.ts$|^src\/safety\/(models|names)\/weights\/[a-z-]+\.bin$/.test(path),
        )
        .map((path) => `${path}: not .ts`),
    ],
    seeds: [
      [{ 'src/base/a.ts': 'export const = 1' }, 'src/base/a.ts'],
      [{ 'src/base/a.mjs': '' }, 'not .ts'],
      [{ 'src/base/a.js': '' }, 'not .ts'],
      [{ 'src/policy/limits/a.mts': 'export const a = Date.now()' }, 'not .ts'],
      [{ 'src/policy/weights/a.bin': '' }, 'not .ts'],
    ],
  },
  {
    name: 'imports follow the table',
    find: (tree) => sourcePaths(tree).flatMap((path) => importProblems(tree, path, FOLDERS)),
    seeds: IMPORTS_THAT_BREAK,
    clean: IMPORTS_THAT_PASS,
  },
  {
    name: 'packages, modules of Node and globals follow the table',
    find: (tree) => sourcePaths(tree).flatMap((path) => judgeOutside(tree, path, FOLDERS, EXCEPTIONS).problems),
    seeds: OUTSIDE_THAT_BREAKS,
    clean: OUTSIDE_THAT_PASSES,
  },
  {
    name: 'nothing outside is behind the simulator, or behind the code that it shares with the live server',
    find: (tree) =>
      NEVER_BEHIND.flatMap(([from, to]) =>
        chainsTo(
          tree,
          sourcePaths(tree).filter((path) => from.test(path)),
          to,
        ),
      ),
    seeds: [
      [{ 'src/sim/a.ts': "import {\n  b,\n} from '../backends/http-openai.ts'" }, 'src/backends/http-openai.ts'],
      [
        {
          'src/sim/a.ts': "import { b } from '../assembly/b.ts'",
          'src/assembly/b.ts': "import { c } from './http-c.ts'",
        },
        'src/sim/a.ts → src/assembly/b.ts → src/assembly/http-c.ts',
      ],
      [
        { 'src/sim/a.ts': "import '../store/b.ts'", 'src/store/b.ts': "export const b = await import('./pg-c.ts')" },
        'src/store/pg-c.ts',
      ],
      [
        { 'src/sim/a.ts': "import '../control/b.ts'", 'src/control/b.ts': "import '../gateway/c.ts'" },
        'src/gateway/c.ts',
      ],
      [{ 'src/sim/a.ts': "import { LiveClock } from '../base/live-clock.ts'" }, 'src/base/live-clock.ts'],
      [{ 'src/policy/limits/a.ts': "import { LiveClock } from '../../base/live-clock.ts'" }, 'src/base/live-clock.ts'],
    ],
    clean: [
      {
        'src/sim/gateway.ts': "import { b } from '../backends/b.ts'",
        'src/backends/b.ts': "import type { C } from './http-c.ts'",
      },
      { 'src/sim/a.ts': "import { b } from './fs-b.ts'", 'src/base/live-b.ts': "import { c } from './live-c.ts'" },
    ],
  },
  {
    name: 'no import cycles, not even of types',
    find: findCycles,
    seeds: [
      [{ 'src/base/a.ts': "import type { b } from './b.ts'", 'src/base/b.ts': "import { a } from './a.ts'" }, ' → '],
      [{ 'src/base/a.ts': "import { a } from './a.ts'" }, ' → '],
    ],
  },
  {
    name: 'no barrels: a thing has one place and one name',
    find: (tree) =>
      codePaths(tree).flatMap((path) =>
        tree.module(path).reExports.map(({ line, what }) => `${path}:${line} re-exports ${what}`),
      ),
    seeds: RE_EXPORTS,
    clean: NOT_RE_EXPORTS,
  },
  {
    name: 'only lifecycle writes to a ticket',
    find: (tree) =>
      sourcePaths(tree)
        .filter(isOutsideLifecycle)
        .flatMap((path) => [
          ...ticketWritesOf(tree.module(path).syntax).map((line) => `${path}:${line} writes to a ticket`),
          ...tree
            .module(path)
            .edges.filter(({ target, isType }) => target === 'src/lifecycle/ticket.ts' && !isType)
            .map(({ target, line }) => `${path}:${line} imports more than types of ${target}`),
        ]),
    seeds: TICKET_WRITES,
    clean: NOT_TICKET_WRITES,
  },
  {
    // A route that looked a key up by itself would forget what the key's terms say of addresses and routes.
    name: 'only two files look up whose key it is: routes ask gateway/check-call.ts',
    find: (tree) =>
      tree.paths
        .filter((path) => /^src\/(gateway|main|control)\/.*(?<!\.test)\.ts$/.test(path) && !LOOK_UP_KEYS.includes(path))
        .filter((path) => /\b(authenticate|identify|byHash|byIdentity|onBehalf)\(/.test(tree.text(path)))
        .map((path) => `${path}: looks a key up`),
    seeds: [
      [{ 'src/gateway/routes/a.ts': 'const a = authenticate(keys, exchange)' }, 'looks a key up'],
      [{ 'src/gateway/routes/a.ts': 'const a = keys.byHash(digest)' }, 'src/gateway/routes/a.ts'],
    ],
    clean: [{ 'src/gateway/routes/a.ts': 'const a = callerFor(exchange, keys, {})' }],
  },
  {
    name: 'names are kebab-case and say what is inside',
    find: (tree) => codePaths(tree).flatMap(nameProblem),
    seeds: [
      [{ 'src/base/string-utils.ts': '' }, 'says nothing'],
      [{ 'src/base/index.ts': '' }, 'says nothing'],
      [{ 'src/base/makePlan.ts': '' }, 'not kebab-case'],
      [{ 'src/Base/a.ts': '' }, 'not kebab-case'],
    ],
    clean: [{ 'src/base/live-clock.test.ts': '' }, { 'vitest.config.ts': '' }, { 'bin/spillway.mjs': '' }],
  },
  {
    name: `files have at most ${FILE_LINES_MAX} lines`,
    find: (tree) =>
      codePaths(tree).flatMap((path) => {
        const count = tree.text(path).split('\n').length - 1
        return count > FILE_LINES_MAX ? [`${path} has ${count}`] : []
      }),
    seeds: [[{ 'src/base/a.ts': lines(FILE_LINES_MAX + 1) }, `has ${FILE_LINES_MAX + 1}`]],
  },
  {
    name: `functions have at most ${FUNCTION_LINES_MAX} lines`,
    find: longFunctions,
    seeds: [
      [{ 'src/base/a.ts': `export function a(b: () => void): Map<string, number> {\n${lines(90)}}` }, 'a has 92'],
      [{ 'src/base/a.ts': `const a = (b: number) => {\n${lines(FUNCTION_LINES_MAX)}}` }, 'a has'],
      [{ 'src/base/a.ts': `const a = (b: number) =>\n  f([\n${'    1,\n'.repeat(90)}  ])` }, 'a has 93'],
      [
        { 'src/base/a.ts': `class A {\n  #a<T>(\n    b: T,\n  ): void {\n    if (b) {\n${lines(90)}}\n  }\n}` },
        'a has',
      ],
      [{ 'src/base/a.ts': `class A {\n  get a(): { b: 1 } {\n${lines(90)}}\n}` }, 'a has 92'],
      [{ 'src/base/a.ts': `class A {\n  static {\n${lines(90)}}\n}` }, '(StaticBlock) has 92'],
      [{ 'src/base/a.ts': `export default [async function* () {\n${lines(90)}}]` }, '(FunctionExpression) has 92'],
      [{ 'scripts/a.mjs': `export const a = { b() {\n${lines(90)}} }` }, 'b has 92'],
    ],
    clean: [
      { 'src/base/a.ts': `class A {\n${'  a() {}\n'.repeat(90)}}` },
      { 'src/base/a.ts': `const a = [\n${'  1,\n'.repeat(90)}]` },
    ],
  },
  {
    name: 'policy, engine and lifecycle files open with a header comment',
    find: (tree) => sourcePaths(tree).filter((path) => NEEDS_HEADER.test(path) && !hasHeader(tree.text(path))),
    seeds: [
      [{ 'src/policy/limits/a.ts': 'export const a = 1' }, 'a.ts'],
      [{ 'src/policy/limits/a.ts': `export const a = 1\n${HEADER}export const b = 1` }, 'a.ts'],
      [{ 'src/engine/a.ts': '// Short.\nexport const a = 1' }, 'a.ts'],
    ],
    clean: [{ 'src/policy/limits/a.ts': `import type { B } from './b.ts'\n\n${HEADER}export const a = 1` }],
  },
  {
    name: 'nothing is left for later',
    find: (tree) => matches(tree, tree.paths, LEFTOVERS),
    seeds: [
      [{ 'src/base/a.ts': '// TO' + 'DO: more' }, 'a.ts:1'],
      [{ 'docs/a.md': 'FIX' + 'ME' }, 'a.md:1'],
    ],
  },
  {
    name: 'no path of one machine, no package registry',
    find: (tree) => [...matches(tree, tree.paths, MACHINE_PATHS), ...matches(tree, tree.paths, REGISTRIES)],
    seeds: [
      [{ 'docs/a.md': 'see `/wo' + 'rk/shared/a`' }, 'a.md:1'],
      [{ 'src/base/a.ts': "const a = '/ro" + "ot/.x'" }, 'a.ts:1'],
      [{ '.npmrc': 'registry=https://registry.np' + 'mjs.org' }, '.npmrc:1'],
    ],
    clean: [{ 'docs/a.md': 'The route /v1/work/orders and the root/tree.' }],
  },
  {
    name: 'links between documents lead somewhere',
    find: (tree) => tree.paths.filter((path) => path.endsWith('.md')).flatMap((path) => brokenLinks(tree, path)),
    seeds: [
      [{ 'docs/a.md': 'See [b](b.md).' }, 'b.md'],
      [{ 'docs/a.md': '![picture](../img/a.svg)' }, 'a.svg'],
      [{ 'docs/a.md': '[b](b.md#no-such-part)', 'docs/b.md': '# Some part' }, 'no-such-part'],
    ],
    clean: [{ 'docs/a.md': '[b](b.md#some-part) [c](https://example.org) `[d](e)`', 'docs/b.md': '## Some part' }],
  },
]

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const project = readTree(root)
const show = (files: Files) => JSON.stringify(files).slice(0, 120)

describe.each(RULES)('tidy: $name', ({ find, seeds, clean = [] }) => {
  it('holds', () => expect(find(project)).toEqual([]))
  it.each(seeds.map(([files, says]) => [show(files), files, says] as const))('catches %s', (_, files, says) => {
    const found = find(makeTree(files))
    expect(found).not.toEqual([])
    for (const sentence of found) expect(sentence).toContain(says)
  })
  it.each([{}, ...clean].map((files) => [show(files), files] as const))('lets pass %s', (_, files) => {
    expect(find(makeTree(files))).toEqual([])
  })
})

describe('tidy: the tables allow nothing that nobody needs', () => {
  it('holds', () => expect(unusedWords(project, FOLDERS, EXCEPTIONS)).toEqual([]))

  const folders = { store: { ours: '', uses: 'waiting', 'fs-': 'node:fs#readFileSync' } }
  const files = {
    'src/store/a.ts': 'export const a = Promise.resolve(Date.now())',
    'src/store/fs-a.ts': "import { readFileSync } from 'node:fs'",
  }
  const clock = ['src/store/a.ts', 'clock', 'a test'] as const
  it.each([
    ['a word that no file needs', { store: { ...folders.store, uses: 'waiting pg' } }, [clock], 'store uses: pg'],
    [
      'a prefix word',
      { store: { ...folders.store, 'fs-': 'node:fs#readFileSync process' } },
      [clock],
      'store fs-: process',
    ],
    ['a row without a folder', { ...folders, cellar: { ours: '' } }, [clock], 'cellar: no folder'],
    ['an exception that is not needed', folders, [clock, ['src/store/a.ts', 'timers', '']], 'src/store/a.ts: timers'],
    [
      'an exception that the row has too',
      folders,
      [clock, ['src/store/a.ts', 'waiting', '']],
      'src/store/a.ts: waiting',
    ],
    ['an exception for nothing', folders, [clock, ['src/store/b.ts', 'clock', '']], 'src/store/b.ts: clock'],
  ] as const)('catches %s', (_, table, exceptions, says) => {
    expect(unusedWords(makeTree(files), table, exceptions)).toEqual([says])
  })
  it('lets pass what is needed', () => expect(unusedWords(makeTree(files), folders, [clock])).toEqual([]))
})

describe('tidy: an exported name has one meaning', () => {
  it('holds', () => expect(sharedNames(project, NAMES_WITH_TWO_MEANINGS)).toEqual([]))
  it.each([
    ['export const x = { b: 1 }', 'export function x() {}'],
    ['export const x = 1', "export type x = 'b'"],
    ['const y = 1\nexport { y as x }', 'export const { z: [x] } = { z: [1] }'],
    ['export class x {}', 'export interface x {}'],
  ])('catches %s beside %s', (one, other) => {
    const tree = makeTree({ 'src/base/a.ts': one, 'src/sim/b.ts': other })
    expect(sharedNames(tree, [])).toEqual(['x: src/base/a.ts, src/sim/b.ts'])
    expect(sharedNames(tree, ['x'])).toEqual([])
  })
  it('lets pass a type and a value that belong together, and what tests export', () => {
    const files = {
      'src/base/a.ts': "export const X = 1\nexport type X = 'a'",
      'src/base/a.test.ts': 'export const X = 2',
    }
    expect(sharedNames(makeTree(files), [])).toEqual([])
  })
  it('catches a name that stays on the list of the shared without need', () => {
    expect(sharedNames(makeTree({ 'src/base/a.ts': 'export const x = 1' }), ['x'])).toHaveLength(1)
  })
})

describe('tidy: the reader', () => {
  it('sees the project', () => {
    const paths = sourcePaths(project)
    const edges = paths.flatMap((path) => project.module(path).edges)
    const functions = paths.flatMap((path) => project.module(path).functions)
    const globals = paths.flatMap((path) => project.module(path).globals)
    for (const { length } of [edges, functions, globals]) expect(length).toBeGreaterThan(paths.length)
    expect(edges.filter(({ target }) => !project.has(target))).toEqual([])
  })
})
