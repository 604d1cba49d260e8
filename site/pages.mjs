// Which files of the repository are in the site, and in what order they are listed beside a page.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isImage, isPage, linksOf, targetOf } from './addresses.mjs'

const SECTIONS = [
  ['Start', (path) => /^docs\/[^/]+\.md$/.test(path)],
  ['Architecture', (path) => path.startsWith('docs/architecture/')],
  ['Recipes', (path) => path.startsWith('docs/recipes/')],
  ['Operations', (path) => /^docs\/operations\/[^/]+\.md$/.test(path)],
  ['Runbooks', (path) => path.startsWith('docs/operations/runbooks/')],
  ['Decisions', (path) => path.startsWith('docs/adr/')],
  ['Project', (path) => !path.startsWith('docs/')],
]

/** Every page of docs/, the project's own pages, and whatever file a page links to. */
export function readPages(root) {
  const tracked = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '')
    .sort()
  const text = (path) => readFileSync(join(root, path), 'utf8')
  const pages = new Map(tracked.filter(isPage).map((path) => [path, text(path)]))
  const files = new Set(tracked)
  const linked = new Set(
    [...pages].flatMap(([path, page]) =>
      linksOf(page)
        .map((link) => targetOf(path, link)?.path)
        .filter((target) => target !== undefined && files.has(target) && !isPage(target)),
    ),
  )
  const images = [...linked].filter(isImage)
  const sources = new Map([...linked].filter((path) => !isImage(path)).map((path) => [path, text(path)]))
  return { pages, images, sources }
}

export function titleOfPage(text, path) {
  return /^#\s+(.+)$/m.exec(text)?.[1]?.replace(/[`*]/g, '') ?? path
}

/** The list beside every page: sections with their pages, a folder's README first. */
export function navigation(pages) {
  const rank = (path) => (path.endsWith('README.md') ? 0 : 1)
  const byTitle = (a, b) => rank(a.path) - rank(b.path) || a.title.localeCompare(b.title, 'en')
  const rows = [...pages].map(([path, text]) => ({ path, title: titleOfPage(text, path) }))
  return SECTIONS.map(([name, isIn]) => ({ name, rows: rows.filter(({ path }) => isIn(path)).sort(byTitle) }))
}
