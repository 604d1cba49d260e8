// One page of the site: what stands around a text. No address of another host is in it.
import { relativeLink, siteAddress } from './addresses.mjs'

const escapeHtml = (text) =>
  text.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c])

export function layPage({ address, title, body, sections, current, headings }) {
  const to = (path) => relativeLink(address, path)
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · Spillway</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${to('assets/style.css')}">
<script>document.documentElement.dataset.root = ${JSON.stringify(to('index.html').replace(/index\.html$/, ''))}</script>
<script src="${to('assets/search.js')}" defer></script>
</head>
<body>
<a class="skip" href="#text">To the text</a>
<header>
<a class="name" href="${to('index.html')}">Spillway</a>
<search><label for="query">Search</label>
<input id="query" type="search" autocomplete="off" placeholder="Search all pages" aria-controls="hits">
<ol id="hits" hidden></ol></search>
</header>
<div class="columns">
<nav aria-label="Pages"><details open><summary>Pages</summary>
${sections.map((section) => listSection(section, current, to)).join('\n')}
</details></nav>
<main id="text">
${body}
<footer><p>Made from <code>${escapeHtml(current)}</code>.</p></footer>
</main>
${headings.length < 2 ? '' : `<aside aria-label="On this page"><p>On this page</p><ul>${headings.map(listHeading).join('')}</ul></aside>`}
</div>
</body>
</html>
`
}

function listSection({ name, rows }, current, to) {
  const isOpen = rows.some(({ path }) => path === current)
  const items = rows.map(({ path, title }) => {
    const mark = path === current ? ' aria-current="page"' : ''
    return `<li><a href="${to(siteAddress(path))}"${mark}>${escapeHtml(title)}</a></li>`
  })
  return `<details class="section"${isOpen ? ' open' : ''}><summary>${name}</summary><ul>\n${items.join('\n')}\n</ul></details>`
}

function listHeading({ id, title }) {
  return `<li><a href="#${encodeURIComponent(id)}">${title}</a></li>`
}

export function headingsOf(body) {
  const found = [...body.matchAll(/<h2 id="([^"]*)"[^>]*>(.*?)<\/h2>/gs)]
  return found.map(([, id, title]) => ({ id, title: title.replace(/<[^>]+>/g, '') }))
}

/** A file of code as a page: with its lines numbered, each with an anchor. */
export function sourceBody(path, text) {
  const lines = text.replace(/\n$/, '').split('\n')
  const rows = lines.map((line, i) => `<span id="L${i + 1}"><i>${i + 1}</i>${escapeHtml(line)}</span>`)
  return `<h1><code>${escapeHtml(path)}</code></h1>\n<pre class="source"><code>${rows.join('\n')}</code></pre>`
}
