// Markdown → HTML as the repository's host shows it: the same anchors, links to files rewritten to pages of the site,
// and mermaid's text drawn as SVG while building, so that readers need neither scripts nor a network for a diagram.
import { renderMermaidSVG } from 'beautiful-mermaid'
import markdownIt from 'markdown-it'
import { HTML_LINK, relativeLink, siteAddress, targetOf } from './addresses.mjs'

/** A heading's anchor, as GitHub makes it; test/support/tidy-checks.ts holds links against the same rule. */
export function anchorOf(title) {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-')
}

/** The renderer. `isKnown` says whether a file of the repository has a page or a picture in the site. */
export function makeMarkdown(isKnown) {
  const md = markdownIt({ html: true, linkify: false })
  md.core.ruler.push('addresses', (state) => rewriteLinks(state.tokens, state.env.source, isKnown))
  md.core.ruler.push('anchors', (state) => addAnchors(state.tokens))
  const fence = md.renderer.rules.fence
  md.renderer.rules.fence = (tokens, i, ...rest) =>
    tokens[i].info.trim() === 'mermaid' ? drawDiagram(tokens[i].content) : fence(tokens, i, ...rest)
  md.renderer.rules.table_open = () => '<div class="table" tabindex="0" role="region" aria-label="Table"><table>\n'
  md.renderer.rules.table_close = () => '</table></div>\n'
  return md
}

function rewriteLinks(tokens, source, isKnown) {
  const addressOf = (link) => siteLink(link, source, isKnown)
  for (const token of tokens) {
    if (token.children) rewriteLinks(token.children, source, isKnown)
    if (token.type.startsWith('html_'))
      token.content = token.content.replace(HTML_LINK, (_, name, link) => `${name}="${addressOf(link)}"`)
    const name = token.type === 'link_open' ? 'href' : token.type === 'image' ? 'src' : undefined
    if (name) token.attrSet(name, addressOf(token.attrGet(name)))
  }
}

/** The link as a browser follows it from the page's address; links that leave the repository stay as they are. */
function siteLink(link, source, isKnown) {
  const target = targetOf(source, link)
  if (!target) return link
  // A folder is shown by its README.
  const path = [target.path, `${target.path}/README.md`].find(isKnown)
  if (path === undefined) throw new Error(`${source} links to ${target.path}, which is not in the site`)
  const address = relativeLink(siteAddress(source), siteAddress(path))
  return target.part === undefined ? address : `${address}#${encodeURIComponent(target.part)}`
}

function addAnchors(tokens) {
  const used = new Map()
  for (const [i, token] of tokens.entries()) {
    if (token.type !== 'heading_open') continue
    const anchor = anchorOf(titleOf(tokens[i + 1]))
    const count = used.get(anchor) ?? 0
    used.set(anchor, count + 1)
    token.attrSet('id', count === 0 ? anchor : `${anchor}-${count}`)
  }
}

export function titleOf(inline) {
  return (inline.children ?? []).map((child) => (child.type === 'image' ? '' : child.content)).join('')
}

/** The colours are the page's, which has a light and a dark set; the web font that the renderer names is not fetched. */
function drawDiagram(text) {
  const colours = {
    bg: 'var(--paper)',
    fg: 'var(--ink)',
    line: 'var(--line)',
    accent: 'var(--link)',
    muted: 'var(--soft)',
    transparent: true,
  }
  const svg = renderMermaidSVG(text, { ...colours, font: 'system-ui' }).replace(/@import url\([^)]*\);?/g, '')
  const label = /^\s*%%\s*(.+)$/m.exec(text)?.[1] ?? 'Diagram'
  return `<figure class="diagram" tabindex="0" role="img" aria-label="${markdownIt().utils.escapeHtml(label)}">${svg}</figure>\n`
}
