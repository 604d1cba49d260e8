import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import {
  brokenLinks,
  codePaths,
  type Edge,
  edgesOf,
  findCycles,
  hasHeader,
  isTest,
  matches,
  sourcePaths,
} from './support/tidy-checks.ts'
import { functionsOf, importsOf, lineAt, readSource } from './support/tidy-source.ts'
import { makeTree, readTree, type Tree } from './support/tidy-tree.ts'

/**
 * Is the project still the one that the design describes? Four tables say what is allowed; change them here and in
 * the architecture page together, with a reason. Every rule carries seeded violations that it must catch: a rule that
 * cannot fail says nothing.
 */

// ── Who may import whom ────────────────────────────────────────────────────────────────────────────────────────────
// `policy` means all of its folders. `ports` means the types of
// lifecycle/ports.ts and lifecycle/retrieval-ports.ts, and nothing else of lifecycle.
const MAY_IMPORT: Readonly<Record<string, string>> = {
  base: '',
  domain: 'base',
  'policy/planning': 'base domain',
  'policy/budgets': 'base domain',
  'policy/ladder': 'base domain',
  'policy/rollout': 'base domain',
  'policy/admission': 'base domain policy/planning policy/budgets policy/ladder policy/rollout',
  'policy/fairness': 'base domain',
  'policy/limits': 'base domain',
  'policy/routing': 'base domain',
  'policy/dispatch': 'base domain policy/fairness policy/limits policy/routing',
  'policy/autoscale': 'base domain',
  lifecycle: 'base domain policy',
  engine: 'base domain',
  wire: 'base domain',
  backends: 'base domain ports engine wire',
  retrieval: 'base domain ports',
  safety: 'base domain ports',
  store: 'base domain ports',
  telemetry: 'base domain ports',
  dashboard: 'base domain ports',
  gateway: 'base domain policy lifecycle wire',
  jobs: 'base domain policy lifecycle wire',
  config: 'base domain policy engine',
  assembly: 'base domain policy lifecycle engine wire backends store config',
  sim: 'base domain policy lifecycle engine backends retrieval safety store telemetry config assembly',
  control: 'base domain policy lifecycle wire backends store telemetry gateway config assembly',
  'engine-server': 'base domain ports engine wire backends telemetry gateway config assembly',
  load: 'base domain policy ports wire sim config',
  main: 'base domain policy lifecycle wire backends retrieval safety store telemetry dashboard gateway jobs config assembly control',
  cli: 'base domain engine config assembly sim control engine-server load main',
}
/** The simulator must be able to run anywhere, at any speed: no adapter to the outside world reaches it. */
const NEVER_IN_SIM = /(^|\/)(pg|redis|http)-[^/]*$/

// ── Who may touch the outside world ────────────────────────────────────────────────────────────────────────────────
const OUTSIDE_PREFIXES = ['pg-', 'redis-', 'http-', 'fs-', 'live-']
const OUTSIDE_CODE: Readonly<Record<string, RegExp>> = {
  time: /\bDate\.now\b|\bnew Date\(\)|\bperformance\.(now|timeOrigin)\b|\bhrtime\b/g,
  timers: /\b(setTimeout|setInterval|setImmediate)\b/g,
  randomness: /\bMath\.random\b|\brandom(Bytes|UUID|Int|FillSync)\b|\bgetRandomValues\b/g,
  environment: /\bprocess\.env\b/g,
  console: /\bconsole\./g,
  process: /\bprocess\.(?!env\b)\w+/g,
  network: /\bfetch\(|\bnew (WebSocket|EventSource)\b/g,
}
const OUTSIDE_MODULES: Readonly<Record<string, RegExp>> = {
  files: /^node:fs(\/|$)/,
  network: /^(node:(net|tls|http|https|http2|dgram|dns)(\/.*)?|undici)$/,
  stores: /^(pg|redis)$/,
  processes: /^node:(child_process|worker_threads|cluster)$/,
  machine: /^node:(os|readline|perf_hooks|timers)(\/|$)/,
}
/** [path or folder, what it may touch, because]. */
const OUTSIDE_EXCEPTIONS: readonly (readonly [string, string, string])[] = [
  ['src/base/virtual-clock.ts', 'timers', 'steps aside between timers, so that the microtask queue empties'],
  ['src/base/virtual-clock.ts', 'process', 'the same, by nextTick'],
  ['src/config/load.ts', 'environment', 'the only reader of the environment'],
  ['src/cli/', 'process', 'a command line is a process: its words, streams and exit code'],
  ['src/cli/keys-create.ts', 'randomness', 'a secret that a seed could repeat would be none'],
  ['src/main/', 'process', 'the running server answers signals and unhandled errors'],
]

// ── Names and sizes ────────────────────────────────────────────────────────────────────────────────────────────────
/** Such files collect everything: a name must say what is inside. */
const FORBIDDEN_WORDS = ['util', 'utils', 'helper', 'helpers', 'common', 'manager', 'service', 'misc']
/** As a whole name, that is: a prefix index is one. */
const FORBIDDEN_NAMES = ['index']
/** Aim for 300 and 60: these are where it fails. */
const FILE_LINES_MAX = 400
const FUNCTION_LINES_MAX = 80
/** Each of these files opens by saying what it is for: a policy with its question, its idea and its source. */
const NEEDS_HEADER = /^src\/(policy|engine|lifecycle)\//
/** Written apart, or this file would break its own rule. */
const LEFTOVERS = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK'].join('|')})\\b`, 'g')
const MACHINE_PATHS = new RegExp(
  `(?<![\\w.])/(${['wo' + 'rk', 'ro' + 'ot', 'tmp/bo' + 'ot'].join('|')})(/|\\b(?=["'\`\\s]))`,
  'g',
)
const REGISTRIES = new RegExp(['registry\\.np' + 'mjs', 'arti' + 'factory', 'verda' + 'ccio'].join('|'), 'gi')

// ── The rules ──────────────────────────────────────────────────────────────────────────────────────────────────────
interface Rule {
  readonly name: string
  readonly find: (tree: Tree) => string[]
  /** Each tree breaks the rule. */
  readonly seeds: readonly Readonly<Record<string, string>>[]
  /** Each tree keeps it, though it looks as if it did not. */
  readonly clean?: readonly Readonly<Record<string, string>>[]
}

const HEADER = '/**\n * What?\n * So.\n */\n'
const lines = (count: number) => 'x()\n'.repeat(count)

const RULES: readonly Rule[] = [
  {
    name: 'imports follow the table',
    find: (tree) => sourcePaths(tree).flatMap((path) => importProblems(tree, path)),
    seeds: [
      { 'src/domain/a.ts': "import { b } from '../policy/limits/b.ts'", 'src/policy/limits/b.ts': HEADER },
      { 'src/policy/limits/a.ts': "import type { b } from '../fairness/b.ts'", 'src/policy/fairness/b.ts': HEADER },
      { 'src/store/a.ts': "import type { b } from '../lifecycle/platform.ts'" },
      { 'src/store/a.ts': "import { b } from '../lifecycle/ports.ts'" },
      { 'src/store/a.ts': "export const b = await import('../telemetry/journal.ts')" },
      { 'src/sim/a.ts': "import {\n  b,\n} from '../backends/http-openai.ts'" },
      { 'src/main/a.ts': "import '../cli/cli.ts'" },
      { 'src/surprise/a.ts': 'export const a = 1' },
    ],
    clean: [
      { 'src/store/a.ts': "import type { b } from '../lifecycle/ports.ts'\n// import { c } from '../cli/c.ts'" },
      { 'src/domain/a.test.ts': "import { b } from '../policy/limits/b.ts'" },
    ],
  },
  {
    name: 'no import cycles, not even of types',
    find: findCycles,
    seeds: [
      { 'src/base/a.ts': "import type { b } from './b.ts'", 'src/base/b.ts': "import { a } from './a.ts'" },
      { 'src/base/a.ts': "import { a } from './a.ts'" },
    ],
  },
  {
    name: 'only files that say so touch the outside world',
    find: (tree) => sourcePaths(tree).flatMap((path) => outsideProblems(path, tree.text(path))),
    seeds: [
      { 'src/policy/limits/a.ts': 'export const a = () => Date.now()' },
      { 'src/telemetry/a.ts': 'export const a = `$' + '{Math.random()}`' },
      { 'src/gateway/a.ts': 'setTimeout(() => {}, 1)' },
      { 'src/gateway/a.ts': 'export const a = process.env' },
      { 'src/cli/a.ts': 'export const a = process.env' },
      { 'src/main/a.ts': "console.log('a')" },
      { 'src/store/a.ts': "import { readFileSync } from 'node:fs'" },
      { 'src/backends/a.ts': "import { Pool } from 'undici'" },
    ],
    clean: [
      { 'src/store/fs-a.ts': "import { readFileSync } from 'node:fs'" },
      { 'src/store/a.ts': "import type { Stats } from 'node:fs'\n// Date.now()\nexport const a = 'Math.random'" },
      { 'src/cli/a.ts': 'process.exit(1)' },
    ],
  },
  {
    name: 'no barrels: a thing has one place and one name',
    find: (tree) =>
      codePaths(tree).flatMap((path) =>
        importsOf(tree.text(path)).flatMap(({ isReExport, line }) =>
          isReExport ? [`${path}:${line} re-exports`] : [],
        ),
      ),
    seeds: [{ 'src/base/a.ts': "export * from './b.ts'" }, { 'src/base/a.ts': "export type { B } from './b.ts'" }],
  },
  {
    name: 'names are kebab-case and say what is inside',
    find: (tree) => codePaths(tree).flatMap(nameProblem),
    seeds: [
      { 'src/base/string-utils.ts': '' },
      { 'src/base/index.ts': '' },
      { 'src/base/makePlan.ts': '' },
      { 'src/Base/a.ts': '' },
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
    seeds: [{ 'src/base/a.ts': lines(FILE_LINES_MAX + 1) }],
  },
  {
    name: `functions have at most ${FUNCTION_LINES_MAX} lines`,
    find: (tree) =>
      codePaths(tree)
        .filter((path) => !isTest(path))
        .flatMap((path) =>
          functionsOf(tree.text(path))
            .filter((span) => span.lines > FUNCTION_LINES_MAX)
            .map((span) => `${path}:${span.line} ${span.name} has ${span.lines}`),
        ),
    seeds: [
      { 'src/base/a.ts': `export function a(b: () => void): Map<string, number> {\n${lines(FUNCTION_LINES_MAX)}}` },
      { 'src/base/a.ts': `const a = (b: number) => {\n${lines(FUNCTION_LINES_MAX)}}` },
      {
        'src/base/a.ts': `class A {\n  #a<T>(\n    b: T,\n  ): void {\n    if (b) {\n${lines(FUNCTION_LINES_MAX)}}\n  }\n}`,
      },
    ],
    clean: [{ 'src/base/a.ts': `class A {\n${'  a() {}\n'.repeat(FUNCTION_LINES_MAX)}}` }],
  },
  {
    name: 'policy, engine and lifecycle files open with a header comment',
    find: (tree) => sourcePaths(tree).filter((path) => NEEDS_HEADER.test(path) && !hasHeader(tree.text(path))),
    seeds: [
      { 'src/policy/limits/a.ts': 'export const a = 1' },
      { 'src/policy/limits/a.ts': `export const a = 1\n${HEADER}export const b = 1` },
      { 'src/engine/a.ts': '// Short.\nexport const a = 1' },
    ],
    clean: [{ 'src/policy/limits/a.ts': `import type { B } from './b.ts'\n\n${HEADER}export const a = 1` }],
  },
  {
    name: 'nothing is left for later',
    find: (tree) => matches(tree, tree.paths, LEFTOVERS),
    seeds: [{ 'src/base/a.ts': '// TO' + 'DO: more' }, { 'docs/a.md': 'FIX' + 'ME' }],
  },
  {
    name: 'no path of one machine, no package registry',
    find: (tree) => [...matches(tree, tree.paths, MACHINE_PATHS), ...matches(tree, tree.paths, REGISTRIES)],
    seeds: [
      { 'docs/a.md': 'see `/wo' + 'rk/shared/a`' },
      { 'src/base/a.ts': "const a = '/ro" + "ot/.x'" },
      { '.npmrc': 'registry=https://registry.np' + 'mjs.org' },
    ],
    clean: [{ 'docs/a.md': 'The route /v1/work/orders and the root/tree.' }],
  },
  {
    name: 'links between documents lead somewhere',
    find: (tree) => tree.paths.filter((path) => path.endsWith('.md')).flatMap((path) => brokenLinks(tree, path)),
    seeds: [
      { 'docs/a.md': 'See [b](b.md).' },
      { 'docs/a.md': '![picture](../img/a.svg)' },
      { 'docs/a.md': '[b](b.md#no-such-part)', 'docs/b.md': '# Some part' },
    ],
    clean: [{ 'docs/a.md': '[b](b.md#some-part) [c](https://example.org) `[d](e)`', 'docs/b.md': '## Some part' }],
  },
]

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const project = readTree(root)
const show = (files: Readonly<Record<string, string>>) => JSON.stringify(files).slice(0, 100)

describe.each(RULES)('tidy: $name', ({ find, seeds, clean = [] }) => {
  it('holds', () => expect(find(project)).toEqual([]))
  it.each(seeds.map((files) => [show(files), files] as const))('catches %s', (_, files) => {
    expect(find(makeTree(files))).not.toEqual([])
  })
  it.each([{}, ...clean].map((files) => [show(files), files] as const))('lets pass %s', (_, files) => {
    expect(find(makeTree(files))).toEqual([])
  })
})

describe('tidy: the reader', () => {
  it('sees the project', () => {
    const edges = sourcePaths(project).flatMap((path) => edgesOf(project, path))
    const functions = sourcePaths(project).flatMap((path) => functionsOf(project.text(path)))
    expect(edges.length).toBeGreaterThan(sourcePaths(project).length)
    expect(functions.length).toBeGreaterThan(sourcePaths(project).length)
  })
  it('tells code from what only looks like it', () => {
    const { codeOnly } = readSource("a('x') // y\nb(`p $" + '{c(`q $' + '{d}`)} r`, /[/\'"]/g, 4 / 2) /* z */ + e')
    expect(codeOnly.replace(/\s+/g, ' ')).toBe('a( ) b( c( d ) , g, 4 / 2) + e')
  })
})

// ── How the rules look ─────────────────────────────────────────────────────────────────────────────────────────────

/** `policy/limits` for a policy, else the folder under src. */
function unitOf(path: string): string {
  const [, folder = '', sub = ''] = path.split('/')
  return folder === 'policy' ? `policy/${sub}` : folder
}

function importProblems(tree: Tree, path: string): string[] {
  const row = MAY_IMPORT[unitOf(path)]
  if (row === undefined) return [`${path}: no row for ${unitOf(path)} in the table`]
  return edgesOf(tree, path).flatMap((edge) => importProblem(path, row.split(' '), edge))
}

function importProblem(path: string, allowed: readonly string[], { target, line, isType }: Edge): string[] {
  const from = unitOf(path)
  if (!target.startsWith('src/') || unitOf(target) === from) return []
  const to = unitOf(target)
  const isAllowed =
    allowed.includes(to) ||
    allowed.includes(to.split('/')[0] ?? '') ||
    (allowed.includes('ports') && /^src\/lifecycle\/(retrieval-)?ports\.ts$/.test(target) && isType)
  if (!isAllowed) return [`${path}:${line} imports ${target}; ${from} sees ${allowed.join(', ') || 'nothing'}`]
  return from === 'sim' && NEVER_IN_SIM.test(target) ? [`${path}:${line} imports ${target} into the simulator`] : []
}

function outsideProblems(path: string, text: string): string[] {
  const name = path.slice(path.lastIndexOf('/') + 1)
  if (OUTSIDE_PREFIXES.some((prefix) => name.startsWith(prefix))) return []
  const allowed = OUTSIDE_EXCEPTIONS.filter(([place]) => path.startsWith(place)).map(([, what]) => what)
  const { codeOnly } = readSource(text)
  const used = Object.entries(OUTSIDE_CODE).flatMap(([what, pattern]) =>
    allowed.includes(what)
      ? []
      : [...codeOnly.matchAll(pattern)].map((m) => `${path}:${lineAt(codeOnly, m.index)} ${m[0]}`),
  )
  const modules = importsOf(text)
    .filter(({ isType }) => !isType)
    .flatMap(({ specifier, line }) => {
      const what = Object.entries(OUTSIDE_MODULES).find(([, pattern]) => pattern.test(specifier))?.[0]
      return what === undefined || allowed.includes(what) ? [] : [`${path}:${line} imports ${specifier} (${what})`]
    })
  return [...used, ...modules]
}

function nameProblem(path: string): string[] {
  const parts = path.split('/')
  const words = parts.flatMap((part) => part.split(/[-.]/))
  const names = parts.map((part) => part.split('.')[0] ?? '')
  const forbidden =
    words.find((word) => FORBIDDEN_WORDS.includes(word)) ?? names.find((name) => FORBIDDEN_NAMES.includes(name))
  if (forbidden !== undefined) return [`${path}: "${forbidden}" says nothing`]
  return parts.every((part) => /^\.?[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)*$/.test(part)) ? [] : [`${path}: not kebab-case`]
}
