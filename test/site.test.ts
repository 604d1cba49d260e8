import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

/**
 * The documentation site without building it: every link of every page leads to something that the site has, and every
 * page is in its list. What is inside links between pages, anchors included, the tidy test checks.
 */
interface Addresses {
  readonly siteAddress: (path: string) => string
  readonly targetOf: (page: string, link: string) => { path: string; part: string | undefined } | undefined
  readonly relativeLink: (from: string, to: string) => string
  readonly linksOf: (text: string) => string[]
}
interface Markdown {
  readonly anchorOf: (title: string) => string
  readonly makeMarkdown: (isKnown: (path: string) => boolean) => { render(text: string, env: object): string }
}
interface Pages {
  readonly readPages: (root: string) => {
    pages: ReadonlyMap<string, string>
    images: readonly string[]
    sources: ReadonlyMap<string, string>
  }
  readonly navigation: (
    pages: ReadonlyMap<string, string>,
  ) => { name: string; rows: { path: string; title: string }[] }[]
}
interface SearchIndex {
  readonly partsOf: (page: { address: string; title: string; html: string }) => { address: string; text: string }[]
}

const site = <T>(name: string) => import(new URL(`../site/${name}`, import.meta.url).href) as Promise<T>
const { siteAddress, targetOf, relativeLink, linksOf } = await site<Addresses>('addresses.mjs')
const { anchorOf, makeMarkdown } = await site<Markdown>('markdown.mjs')
const { readPages, navigation } = await site<Pages>('pages.mjs')
const { partsOf } = await site<SearchIndex>('search-index.mjs')

const project = readPages(fileURLToPath(new URL('..', import.meta.url)))

describe('the documentation site', () => {
  it('has every file that a page links to', () => {
    const known = new Set([...project.pages.keys(), ...project.images, ...project.sources.keys()])
    const lost = [...project.pages].flatMap(([page, text]) =>
      linksOf(text)
        .map((link) => targetOf(page, link)?.path)
        .filter((path) => path !== undefined && !known.has(path) && !known.has(`${path}/README.md`))
        .map((path) => `${page}: ${path}`),
    )
    expect(lost).toEqual([])
  })

  it('gives every file an address of its own, and lists every page once', () => {
    const files = [...project.pages.keys(), ...project.images, ...project.sources.keys()]
    expect(new Set(files.map(siteAddress)).size).toBe(files.length)
    const listed = navigation(project.pages).flatMap(({ rows }) => rows.map(({ path }) => path))
    expect(listed.toSorted()).toEqual([...project.pages.keys()].sort())
  })

  it.each([
    ['docs/README.md', 'index.html'],
    ['docs/operations/api.md', 'operations/api.html'],
    ['CHANGELOG.md', 'project/changelog.html'],
    ['bench/load/README.md', 'project/bench/load/index.html'],
    ['docs/images/spike.png', 'images/spike.png'],
    ['src/lifecycle/settle.ts', 'source/src/lifecycle/settle.ts.html'],
  ])('has %s at %s', (path, address) => {
    expect(siteAddress(path)).toBe(address)
  })

  it('rewrites links to addresses, with their anchors, and leaves other hosts alone', () => {
    const markdown = makeMarkdown((path) => ['docs/b.md', 'docs/adr/README.md', 'src/a.ts'].includes(path))
    const html = (text: string) => markdown.render(text, { source: 'docs/operations/a.md' })
    expect(html('[b](../b.md#some-part)')).toContain('href="../b.html#some-part"')
    expect(html('[adr](../adr)')).toContain('href="../adr/index.html"')
    expect(html('[a](../../src/a.ts)')).toContain('href="../source/src/a.ts.html"')
    expect(html('[c](https://example.org/a.md)')).toContain('href="https://example.org/a.md"')
    expect(html('<p><img src="../b.md" alt="b"></p>')).toContain('src="../b.html"')
    expect(linksOf('<img src="a.png"> `<img src="b.png">` [c](c.md)')).toEqual(['c.md', 'a.png'])
    expect(() => html('[d](d.md)')).toThrow('docs/operations/a.md links to docs/operations/d.md')
    expect(relativeLink('a/b.html', 'a/b.html')).toBe('b.html')
  })

  it('names headings as the repository’s host does', () => {
    expect(anchorOf('L6 and long prompts')).toBe('l6-and-long-prompts')
    expect(anchorOf('What if? `--set`, twice')).toBe('what-if---set-twice')
    const html = makeMarkdown(() => true).render('# A `b`\n\n## Same\n\n## Same', { source: 'docs/a.md' })
    expect([...html.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)).toEqual(['a-b', 'same', 'same-1'])
  })

  it('draws a diagram without a script and without another host', () => {
    const html = makeMarkdown(() => true).render('```mermaid\nflowchart LR\n  %% A to B\n  A[one] --> B[two]\n```', {})
    expect(html).toContain('<svg')
    expect(html).toContain('aria-label="A to B"')
    expect(html).not.toMatch(/<script|@import|src="http/)
  })

  it('finds a page by its parts', () => {
    const html = '<h1 id="a">A</h1><p>First &amp; last.</p><h2 id="b">B <code>c</code></h2><p>Then.</p>'
    expect(partsOf({ address: 'a.html', title: 'A', html })).toEqual([
      { address: 'a.html#a', page: 'A', title: 'A', text: 'First & last.' },
      { address: 'a.html#b', page: 'A', title: 'B c', text: 'Then.' },
    ])
  })
})
