import { dirname, join, normalize } from 'node:path'
import { isTest, sourcePaths } from './tidy-folders.ts'
import { FORBIDDEN_NAMES, FORBIDDEN_WORDS, FUNCTION_LINES_MAX } from './tidy-tables.ts'
import type { Tree } from './tidy-tree.ts'

/** The rules of the tidy test that are not about folders or tickets. */

export function codePaths(tree: Tree): string[] {
  return tree.paths.filter((path) => /\.[cm]?[jt]sx?$/.test(path))
}

export function unreadable(tree: Tree): string[] {
  return codePaths(tree).flatMap((path) => tree.module(path).syntax.errors.map((error) => `${path}: ${error}`))
}

export function findCycles(tree: Tree): string[] {
  const state = new Map<string, 'open' | 'done'>()
  const found: string[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    if (state.get(path) === 'open') found.push([...trail.slice(trail.indexOf(path)), path].join(' → '))
    if (state.has(path)) return
    state.set(path, 'open')
    for (const { target } of tree.module(path).edges) visit(target, [...trail, path])
    state.set(path, 'done')
  }
  for (const path of sourcePaths(tree)) visit(path, [])
  return found
}

export function longFunctions(tree: Tree): string[] {
  return codePaths(tree)
    .filter((path) => !isTest(path))
    .flatMap((path) =>
      tree
        .module(path)
        .functions.filter((span) => span.lines > FUNCTION_LINES_MAX)
        .map((span) => `${path}:${span.line} ${span.name} has ${span.lines}`),
    )
}

/** Names that two files export, unless they are known; and known names that no longer have two files. */
export function sharedNames(tree: Tree, known: readonly string[]): string[] {
  const homes = new Map<string, Set<string>>()
  for (const path of sourcePaths(tree)) {
    for (const { name } of tree.module(path).exports) homes.set(name, (homes.get(name) ?? new Set()).add(path))
  }
  const shared = [...homes].filter(([, paths]) => paths.size > 1)
  return [
    ...shared.filter(([name]) => !known.includes(name)).map(([name, paths]) => `${name}: ${[...paths].join(', ')}`),
    ...known
      .filter((name) => (homes.get(name)?.size ?? 0) < 2)
      .map((name) => `${name}: not shared any more, take it off`),
  ]
}

export function nameProblem(path: string): string[] {
  const parts = path.split('/')
  const words = parts.flatMap((part) => part.split(/[-.]/))
  const names = parts.map((part) => part.split('.')[0] ?? '')
  const forbidden =
    words.find((word) => FORBIDDEN_WORDS.includes(word)) ?? names.find((name) => FORBIDDEN_NAMES.includes(name))
  if (forbidden !== undefined) return [`${path}: "${forbidden}" says nothing`]
  return parts.every((part) => /^\.?[a-z0-9]+(-[a-z0-9]+)*(\.[a-z]+)*$/.test(part)) ? [] : [`${path}: not kebab-case`]
}

export function hasHeader(text: string): boolean {
  return /^(?:import[^;'"]*['"][^'"]+['"](?: with \{[^}]*\})?\n|\s*\n)*\/\*\*/.test(text)
}

export function matches(tree: Tree, paths: readonly string[], pattern: RegExp): string[] {
  return paths.flatMap((path) =>
    [...tree.text(path).matchAll(pattern)].map((m) => `${path}:${lineAt(tree.text(path), m.index)} ${m[0]}`),
  )
}

function lineAt(text: string, index: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < index; at = text.indexOf('\n', at + 1)) line++
  return line
}

export function brokenLinks(tree: Tree, path: string): string[] {
  const prose = tree.text(path).replace(/```[\s\S]*?```|`[^`\n]*`/g, '')
  return [...prose.matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/g)]
    .map((match) => match[1] ?? '')
    .filter((link) => !/^([a-z]+:|\/\/)/i.test(link))
    .filter((link) => {
      const [file = '', part] = decodeURIComponent(link).split('#')
      const target = file === '' ? path : normalize(join(dirname(path), file)).replace(/\/$/, '')
      if (target !== '.' && !tree.has(target)) return true
      return part !== undefined && target.endsWith('.md') && !anchorsOf(tree.text(target)).includes(part)
    })
    .map((link) => `${path}: ${link}`)
}

/** Headings as GitHub names them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+\s+(.*)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replace(/\s/g, '-'),
  )
}
