import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Module } from './tidy-module.ts'

/** The project as the tidy rules see it: paths and texts. A rule's self-check brings a tree of its own. */
export interface Tree {
  readonly paths: readonly string[]
  text(path: string): string
  /** The parsed file; for code only. */
  module(path: string): Module
  /** A tracked file, or a folder that holds one. */
  has(path: string): boolean
}

export function makeTree(files: Readonly<Record<string, string>>): Tree {
  const paths = Object.keys(files)
  const modules = new Map<string, Module>()
  return {
    paths,
    text: (path) => files[path] ?? '',
    module: (path) => {
      const known = modules.get(path) ?? new Module(path, files[path] ?? '')
      modules.set(path, known)
      return known
    },
    has: (path) => paths.some((known) => known === path || known.startsWith(`${path}/`)),
  }
}

const NOT_TEXT = /\.(png|jpg|gif|ico|woff2?|gz|zip|wasm|bin|parquet|csv)$|^package-lock\.json$/

/** What git knows or would take; in a copy without git, what is not plainly installed or made. */
export function readTree(root: string): Tree {
  const paths = listPaths(root).filter((path) => existsSync(join(root, path)))
  // Pictures are there to be linked to, and have nothing to read.
  const textOf = (path: string): string => (NOT_TEXT.test(path) ? '' : readFileSync(join(root, path), 'utf8'))
  return makeTree(Object.fromEntries(paths.map((path) => [path, textOf(path)])))
}

function listPaths(root: string): string[] {
  try {
    const args = ['ls-files', '--cached', '--others', '--exclude-standard', '-z']
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .split('\0')
      .filter((path) => path !== '' && statOrUndefined(join(root, path))?.isFile())
  } catch {
    return walk(root, '')
  }
}

const MADE = new Set(['.git', 'node_modules', 'coverage', '.spillway', 'data'])

function walk(root: string, folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (MADE.has(entry.name)) return []
    return entry.isDirectory() ? walk(root, path) : [path]
  })
}

function statOrUndefined(path: string) {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}
