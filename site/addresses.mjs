// Where a file of the repository is found in the documentation site. Pure: the tests ask without building.
//
//   docs/operations/api.md    → operations/api.html
//   docs/README.md            → index.html           (a folder's README is its first page)
//   CHANGELOG.md              → project/changelog.html
//   src/lifecycle/settle.ts   → source/src/lifecycle/settle.ts.html
//   docs/images/spike.png     → images/spike.png
//
// Addresses name their file, so that the site works from a folder on the disk, without a server.
import { posix } from 'node:path'

const IMAGE = /\.(png|svg|jpg|jpeg|gif|webp)$/i

export const isImage = (path) => IMAGE.test(path)
export const isPage = (path) => path.endsWith('.md')

export function siteAddress(path) {
  if (isImage(path)) return path.replace(/^docs\//, '')
  if (!isPage(path)) return `source/${path}.html`
  const page = path.replace(/(^|\/)README\.md$/, '$1index.md').replace(/\.md$/, '.html')
  return page.startsWith('docs/') ? page.slice('docs/'.length) : `project/${page.toLowerCase()}`
}

/** The file that a link of a page leads to, with the part behind #; nothing for links that leave the repository. */
export function targetOf(page, link) {
  if (/^([a-z]+:|\/\/)/i.test(link)) return undefined
  const [file = '', part] = decodeURIComponent(link).split('#')
  const path = file === '' ? page : posix.normalize(posix.join(posix.dirname(page), file)).replace(/\/$/, '')
  return { path, part }
}

/** A link between two addresses of the site, as a browser reads it from the first. */
export function relativeLink(from, to) {
  const link = posix.relative(posix.dirname(from), to)
  return link === '' ? posix.basename(to) : link
}

/** An attribute of HTML inside Markdown that names a file. */
export const HTML_LINK = /\b(src|href)="([^"]+)"/g

/** Links in the prose of a page, Markdown's and HTML's: not those in code. */
export function linksOf(text) {
  const prose = text.replace(/```[\s\S]*?```|`[^`\n]*`/g, (code) => '`'.repeat(code.length))
  const written = [...prose.matchAll(/\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)/g)].map((match) => match[1] ?? '')
  return [...written, ...[...prose.matchAll(HTML_LINK)].map((match) => match[2] ?? '')]
}
