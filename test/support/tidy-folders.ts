import type { GlobalUse } from './tidy-globals.ts'
import type { Import } from './tidy-imports.ts'
import type { Edge } from './tidy-module.ts'
import { type Exception, type Folder, GLOBALS } from './tidy-tables.ts'
import type { Tree } from './tidy-tree.ts'

/** The tables of folders, held against the tree: imports of our own files, then packages, Node and globals. */

export type Folders = Readonly<Record<string, Folder>>

export const isTest = (path: string) => path.endsWith('.test.ts') || path.startsWith('test/')

/** Files that ship. Tests are left out: a test may import anything that it tests. */
export function sourcePaths(tree: Tree): string[] {
  return tree.paths.filter((path) => /^src\/.*\.[cm]?[jt]sx?$/.test(path) && !isTest(path))
}

/** `policy/limits` for a policy, else the folder under src. */
export function unitOf(path: string): string {
  const [, folder = '', sub = ''] = path.split('/')
  return folder === 'policy' ? `policy/${sub}` : folder
}

const wordsOf = (words: string | undefined) => (words ?? '').split(/\s+/).filter((word) => word !== '')

// ── Our own files ──────────────────────────────────────────────────────────────────────────────────────────────────

const PORTS = /^src\/lifecycle\/([a-z]+-)?ports\.ts$/

export function importProblems(tree: Tree, path: string, folders: Folders): string[] {
  const unit = unitOf(path)
  const row = folders[unit]
  if (row === undefined) return [`${path}: no row for ${unit} in the table`]
  const allowed = wordsOf(row.ours)
  const isAllowed = ({ target, isType }: Edge): boolean =>
    allowed.some((word) =>
      word === 'ports'
        ? isType && PORTS.test(target)
        : target === `src/${word}.ts` || target.startsWith(`src/${word}/`),
    )
  return tree
    .module(path)
    .edges.filter((edge) => !isSource(edge.target) || (unitOf(edge.target) !== unit && !isAllowed(edge)))
    .map(({ target, line }) => `${path}:${line} imports ${target}; ${unit} sees ${allowed.join(', ') || 'nothing'}`)
}

const isSource = (target: string) => target.startsWith('src/') && !isTest(target)

/** The shortest chain of value imports from one of the files `from` to each forbidden file that they reach. */
export function chainsTo(tree: Tree, from: readonly string[], forbidden: RegExp): string[] {
  const cameFrom = new Map<string, string | undefined>(from.map((path) => [path, undefined]))
  // Breadth first: a `for` over a map also visits the keys that its body adds.
  for (const [path] of cameFrom) {
    if (forbidden.test(path)) continue
    for (const { target, isType } of tree.module(path).edges) {
      if (!isType && !cameFrom.has(target)) cameFrom.set(target, path)
    }
  }
  return [...cameFrom.keys()].filter((path) => forbidden.test(path)).map((path) => chainOf(cameFrom, path).join(' → '))
}

function chainOf(cameFrom: ReadonlyMap<string, string | undefined>, end: string): string[] {
  const before = cameFrom.get(end)
  return before === undefined ? [end] : [...chainOf(cameFrom, before), end]
}

// ── The outside ────────────────────────────────────────────────────────────────────────────────────────────────────

/** Something that a file takes from outside, by the word that the tables have for it. */
interface Need {
  readonly word: string
  readonly line: number
  readonly isType: boolean
  /** The need in the words of the file, for the message. */
  readonly shown: string
}

export function needsOf(tree: Tree, path: string): Need[] {
  const { imports, globals } = tree.module(path)
  return [...imports.flatMap(needsOfImport), ...globals.flatMap(needOfGlobal)]
}

function needsOfImport({ specifier, line, isType, names }: Import): Need[] {
  if (specifier === undefined) return [{ word: 'computed import', line, isType, shown: 'a computed import' }]
  if (specifier.startsWith('.')) {
    // A data file's word is its path from the root; our own code is judged by `importProblems`.
    return specifier.endsWith('.json')
      ? [{ word: specifier.replace(/^(\.\.\/)+/, ''), line, isType, shown: specifier }]
      : []
  }
  const shown = `import of '${specifier}'`
  if (specifier.startsWith('node:')) {
    return (names.length === 0 ? ['*'] : names).map((name) => ({ word: `${specifier}#${name}`, line, isType, shown }))
  }
  const [scope = '', name] = specifier.split('/')
  return [{ word: scope.startsWith('@') ? `${scope}/${name}` : scope, line, isType, shown }]
}

const GROUP_OF: ReadonlyMap<string, string> = new Map(
  Object.entries(GLOBALS).flatMap(([group, names]) => names.split(/,\s*/).map((name) => [name, group] as const)),
)

function needOfGlobal({ chain, how, line }: GlobalUse): Need[] {
  const label = labelsOf(chain, how).find((known) => GROUP_OF.has(known))
  // Properties of arbitrary objects matter only when the table names them.
  if (chain[0] === '' && label === undefined) return []
  const group = label === undefined ? 'unknown global' : (GROUP_OF.get(label) ?? '')
  const isHarmless = group === 'pure' || (how === 'only named' && chain.length === 1)
  return isHarmless ? [] : [{ word: group, line, isType: false, shown: `use of ${chain.join('.')}` }]
}

/** Entries of the table that match a use, the most exact first. */
function labelsOf(chain: readonly string[], how: GlobalUse['how']): string[] {
  const whole = chain.join('.')
  const labels: string[] = []
  if (how === 'made') labels.push(`new ${whole}(…)`)
  if (how === 'made with none') labels.push(`new ${whole}()`)
  if (how === 'called with none' || (how === 'called' && chain[0] !== '')) labels.push(`${whole}()`)
  for (let length = chain.length; length > 0; length--) {
    const part = chain.slice(0, length)
    if (part.includes('?')) continue
    labels.push(part.join('.'))
    if (length > 1) labels.push(`${part.slice(0, -1).join('.')}.*`)
  }
  return labels
}

/** The list of a row, or the exception, that allows a need. */
interface Grant {
  readonly where: string
  readonly word: string
}

interface Judged {
  readonly problems: readonly string[]
  readonly used: readonly Grant[]
}

const PREFIXES = ['fs-', 'http-', 'live-', 'pg-', 'redis-'] as const

export function judgeOutside(tree: Tree, path: string, folders: Folders, exceptions: readonly Exception[]): Judged {
  const unit = unitOf(path)
  const row = folders[unit] ?? { ours: '' }
  const name = path.slice(path.lastIndexOf('/') + 1)
  const prefix = PREFIXES.find((known) => name.startsWith(known))
  const grants = [
    ...wordsOf(row.uses).map((word) => ({ where: `${unit} uses`, word })),
    ...(prefix === undefined ? [] : wordsOf(row[prefix]).map((word) => ({ where: `${unit} ${prefix}`, word }))),
    ...exceptions.filter(([place]) => place === path).map(([where, word]) => ({ where, word })),
  ]
  const anywhere = PREFIXES.flatMap((known) => wordsOf(row[known])).map((word) => word.split('#')[0])
  const problems: string[] = []
  const used: Grant[] = []
  if (prefix !== undefined && row[prefix] === undefined) problems.push(`${path}: ${unit} has no ${prefix} files`)
  for (const { word, line, isType, shown } of needsOf(tree, path)) {
    const [module = word] = word.split('#')
    const grant = grants.find((given) => given.word === word || given.word === module)
    if (grant !== undefined) used.push(grant)
    else if (!isType || !anywhere.includes(module)) problems.push(`${path}:${line} ${shown} (${word})`)
  }
  return { problems, used }
}

/** Rows without a folder, and words and exceptions that no file needs. */
export function unusedWords(tree: Tree, folders: Folders, exceptions: readonly Exception[]): string[] {
  const paths = sourcePaths(tree)
  const used = new Set(
    paths.flatMap((path) =>
      judgeOutside(tree, path, folders, exceptions).used.map(({ where, word }) => `${where}: ${word}`),
    ),
  )
  const given = Object.entries(folders).flatMap(([unit, row]) =>
    (['uses', ...PREFIXES] as const).flatMap((list) => wordsOf(row[list]).map((word) => `${unit} ${list}: ${word}`)),
  )
  return [
    ...Object.keys(folders)
      .filter((unit) => !paths.some((path) => unitOf(path) === unit))
      .map((unit) => `${unit}: no folder`),
    ...[...given, ...exceptions.map(([path, word]) => `${path}: ${word}`)].filter((word) => !used.has(word)),
  ]
}
