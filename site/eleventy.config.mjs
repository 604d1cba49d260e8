// The documentation site: every page of docs/ and the project's own, as plain files that a browser opens from the disk.
//
//   npm run docs               writes dist/docs; open dist/docs/index.html
//   npm run docs -- --serve    the same, and again whenever a page changes
//
// Eleventy reads docs/, writes and watches; addresses, Markdown, layout and search are the files beside this one.
import { writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { siteAddress } from './addresses.mjs'
import { headingsOf, layPage, sourceBody } from './layout.mjs'
import { makeMarkdown } from './markdown.mjs'
import { navigation, readPages, titleOfPage } from './pages.mjs'
import { makeIndex, partsOf } from './search-index.mjs'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')
const OUTPUT = join('dist', 'docs')

export default function configure(config) {
  const { pages, images, sources } = readPages(ROOT)
  const known = new Set([...pages.keys(), ...images, ...sources.keys()])
  const atAddress = new Map(
    [...known].map((path) => [`/${siteAddress(path).replace(/(^|\/)index\.html$/, '$1')}`, path]),
  )
  const sections = navigation(pages)
  const markdown = makeMarkdown((path) => known.has(path))

  // The file of the repository that a template is made from: those outside docs/ say it themselves.
  const sourceOf = (data) => data.source ?? data.page.inputPath.replace(/^\.\//, '')
  config.setLibrary('md', { render: (text, data) => markdown.render(text, { source: sourceOf(data) }), disable() {} })
  config.addGlobalData('eleventyComputed', { permalink: (data) => siteAddress(sourceOf(data)) })
  for (const [source, text] of pages)
    if (!source.startsWith('docs/')) config.addTemplate(`project/${source}`, text, { source })
  for (const [source, text] of sources)
    config.addTemplate(`source/${source}.html`, sourceBody(source, text), { source })
  for (const path of images) config.addPassthroughCopy({ [path]: siteAddress(path) })
  config.addPassthroughCopy({
    'site/assets': 'assets',
    'node_modules/minisearch/dist/umd/index.js': 'assets/minisearch.js',
  })

  const parts = new Map()
  config.addTransform('layout', function lay(body) {
    const current = atAddress.get(this.page.url)
    const address = siteAddress(current)
    const title = titleOfPage(pages.get(current) ?? '', current)
    if (pages.has(current)) parts.set(current, partsOf({ address, title, html: body }))
    return layPage({ address, title, body, sections, current, headings: headingsOf(body) })
  })
  config.on('eleventy.after', ({ directories }) => {
    const entries = [...parts].sort(([a], [b]) => (a < b ? -1 : 1)).flatMap(([, entry]) => entry)
    writeFileSync(join(resolve(directories.output), 'assets', 'search-index.js'), makeIndex(entries))
  })
  config.addWatchTarget('site/**/*')
  config.addWatchTarget('docs/**/*', { resetConfig: true })

  return {
    dir: { input: 'docs', output: OUTPUT },
    templateFormats: ['md', 'html'],
    markdownTemplateEngine: false,
    htmlTemplateEngine: false,
  }
}
