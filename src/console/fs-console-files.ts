import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'

/**
 * The console's pages, and the three packages that draw them, as they are on the disk: nothing is built, nothing comes
 * from elsewhere. Read when the first viewer comes, and kept. Only names of this list are served.
 */
export interface PageFile {
  readonly type: string
  readonly text: string
  readonly etag: string
}

const VENDORS: Readonly<Record<string, string>> = {
  'vendor/preact.js': 'preact/dist/preact.mjs',
  'vendor/htm.js': 'htm/dist/htm.module.js',
  'vendor/uplot.js': 'uplot/dist/uPlot.esm.js',
  'vendor/uplot.css': 'uplot/dist/uPlot.min.css',
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const ROOT = join(import.meta.dirname, '..', '..')

export function makePageFiles(): (name: string) => PageFile | undefined {
  let files: ReadonlyMap<string, PageFile> | undefined
  return (name) => {
    files ??= readAll()
    return files.get(name)
  }
}

function readAll(): ReadonlyMap<string, PageFile> {
  const folder = join(ROOT, 'pages')
  const own = readdirSync(folder).map((name) => [name, join(folder, name)] as const)
  const vendors = Object.entries(VENDORS).map(([name, path]) => [name, inPackages(path)] as const)
  return new Map(
    [...own, ...vendors].map(([name, path]) => {
      const text = readFileSync(path, 'utf8').replace(/\n\/\/# sourceMappingURL=.*$/m, '')
      const etag = `"${createHash('sha256').update(text).digest('hex').slice(0, 20)}"`
      return [name, { type: TYPES[extname(name)] ?? 'text/plain; charset=utf-8', text, etag }]
    }),
  )
}

/** A package's file, where Node would look for it: beside us in a checkout, in a folder above where npm installed us. */
function inPackages(path: string): string {
  for (let folder = ROOT; ; folder = dirname(folder)) {
    const candidate = join(folder, 'node_modules', path)
    if (existsSync(candidate) || folder === dirname(folder)) return candidate
  }
}
