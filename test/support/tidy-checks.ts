import { dirname, join, normalize } from 'node:path'
import { importsOf, lineAt } from './tidy-source.ts'
import type { Tree } from './tidy-tree.ts'

/** What the tidy rules look at, as far as it needs no table. */

export const isTest = (path: string) => path.endsWith('.test.ts') || path.startsWith('test/')

export function codePaths(tree: Tree): string[] {
  return tree.paths.filter((path) => /\.(ts|mjs)$/.test(path))
}

/** What ships: tests may reach for whatever they test. */
export function sourcePaths(tree: Tree): string[] {
  return codePaths(tree).filter((path) => path.startsWith('src/') && !isTest(path))
}

export interface Edge {
  readonly target: string
  readonly line: number
  readonly isType: boolean
}

export function edgesOf(tree: Tree, path: string): Edge[] {
  return importsOf(tree.text(path))
    .filter(({ specifier }) => specifier.startsWith('.'))
    .map(({ specifier, line, isType }) => ({ target: normalize(join(dirname(path), specifier)), line, isType }))
}

export function findCycles(tree: Tree): string[] {
  const state = new Map<string, 'open' | 'done'>()
  const found: string[] = []
  const visit = (path: string, trail: readonly string[]): void => {
    if (state.get(path) === 'open') found.push([...trail.slice(trail.indexOf(path)), path].join(' → '))
    if (state.has(path)) return
    state.set(path, 'open')
    for (const { target } of edgesOf(tree, path)) visit(target, [...trail, path])
    state.set(path, 'done')
  }
  for (const path of sourcePaths(tree)) visit(path, [])
  return found
}

export function hasHeader(text: string): boolean {
  return /^(?:import[^;'"]*['"][^'"]+['"](?: with \{[^}]*\})?\n|\s*\n)*\/\*\*/.test(text)
}

export function matches(tree: Tree, paths: readonly string[], pattern: RegExp): string[] {
  return paths.flatMap((path) =>
    [...tree.text(path).matchAll(pattern)].map((m) => `${path}:${lineAt(tree.text(path), m.index)} ${m[0]}`),
  )
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
