// The index behind the search box: made while building, and a script instead of JSON, because a page that was opened
// from the disk may load scripts but may not fetch. One entry is one heading with the text up to the next.
import MiniSearch from 'minisearch'

/** Beyond this a table of figures would make the index larger than all pages together. */
const WORDS_MAX = 400

/** Shared with assets/search.js, which loads the index with the same options. */
export const SEARCH_OPTIONS = { fields: ['title', 'page', 'text'], storeFields: ['title', 'page', 'address'] }

export function partsOf({ address, title, html }) {
  const pieces = html.split(/<h([1-3]) id="([^"]*)"[^>]*>(.*?)<\/h\1>/s)
  const parts = []
  for (let i = 1; i < pieces.length; i += 4) {
    const [, id, heading, text] = pieces.slice(i, i + 4)
    parts.push({ address: `${address}#${id}`, page: title, title: plain(heading), text: words(plain(text ?? '')) })
  }
  return parts
}

const plain = (html) =>
  html
    .replace(/<svg[\s\S]*?<\/svg>/g, ' ')
    .replace(/<[^>]+>/g, ' ')
    .replace(/&lt;/g, '<')
    .replace(/&gt;/g, '>')
    .replace(/&quot;/g, '"')
    .replace(/&amp;/g, '&')
    .replace(/\s+/g, ' ')
    .trim()

const words = (text) => text.split(' ').slice(0, WORDS_MAX).join(' ')

export function makeIndex(parts) {
  const index = new MiniSearch(SEARCH_OPTIONS)
  index.addAll(parts.map((part, id) => ({ id, ...part })))
  return `window.spillwayIndex = ${JSON.stringify(JSON.stringify(index))}\n`
}
