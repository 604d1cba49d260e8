/**
 * How is a document cut into passages?
 *
 * By its own structure first: Markdown headings begin a new passage and are repeated at the head of each passage under
 * them, because "It is five days" means nothing without "Refunds"; paragraphs, list items and code blocks stay whole
 * while they fit. Then by sentences, and only what has no sentence end by words. Passages are filled up to
 * `charactersMax`; the next one under the same heading begins with the last sentence of the one before (up to
 * `overlapCharacters`), so that what stands across a cut is found on both sides.
 *
 * Nothing is left out: every word of the document is in at least one passage. The same text gives the same passages.
 */
export interface SplitOptions {
  readonly charactersMax: number
  readonly overlapCharacters: number
}

export const SPLIT_DEFAULTS: SplitOptions = {
  /**
   * About 170 tokens of English. Shorter passages find more exactly and cost more of them; an embedder that reads a
   * sentence at a time (ours does) blurs what is longer. Measured against 400 and 1,200 in bench/retrieval/README.md.
   */
  charactersMax: 700,
  overlapCharacters: 120,
}

export function splitPassages(text: string, options: SplitOptions = SPLIT_DEFAULTS): string[] {
  const passages: string[] = []
  for (const { path, blocks } of sectionsOf(text)) {
    const heading = headingLine(path, options.charactersMax)
    const room = options.charactersMax - heading.length
    for (const body of packed(blocks, room, options.overlapCharacters)) passages.push(heading + body)
  }
  return passages
}

interface Section {
  /** Headings above the passage, outermost first. */
  readonly path: readonly string[]
  readonly blocks: string[]
}

const HEADING = /^(#{1,6})\s+(.+?)\s*#*$/
const FENCE = /^\s*(```|~~~)/

function sectionsOf(text: string): Section[] {
  const sections: Section[] = []
  let path: string[] = []
  let blocks: string[] = []
  let block: string[] = []
  let isInFence = false
  const endBlock = (): void => {
    const joined = block.join('\n').trim()
    if (joined !== '') blocks.push(joined)
    block = []
  }
  const endSection = (): void => {
    endBlock()
    // A heading without text under it is text too.
    if (blocks.length > 0) sections.push({ path, blocks })
    else if (path.length > 0) sections.push({ path: path.slice(0, -1), blocks: [path.at(-1) as string] })
    blocks = []
  }
  for (const line of text.replaceAll('\r\n', '\n').split('\n')) {
    if (FENCE.test(line)) isInFence = !isInFence
    const heading = isInFence ? null : HEADING.exec(line)
    if (heading !== null) {
      endSection()
      const depth = (heading[1] as string).length
      path = [...path.slice(0, depth - 1), heading[2] as string]
    } else if (line.trim() === '' && !isInFence) endBlock()
    else block.push(line)
  }
  endSection()
  return sections
}

/** At most a third of a passage: long headings must not crowd out the text. */
function headingLine(path: readonly string[], charactersMax: number): string {
  if (path.length === 0) return ''
  const whole = path.join(' › ')
  const line =
    whole.length <= charactersMax / 3 ? whole : (path.at(-1) as string).slice(0, Math.floor(charactersMax / 3))
  return `${line}\n`
}

function* packed(blocks: readonly string[], room: number, overlap: number): Generator<string> {
  let passage = ''
  let lastPiece = ''
  for (const { piece, glue } of piecesOf(blocks, room)) {
    if (passage !== '' && passage.length + glue.length + piece.length > room) {
      yield passage
      const carried = lastPiece.length <= overlap && lastPiece.length + 1 + piece.length <= room ? `${lastPiece} ` : ''
      passage = carried + piece
    } else passage = passage === '' ? piece : passage + glue + piece
    lastPiece = piece
  }
  if (passage !== '') yield passage
}

/** Whole blocks where they fit, else their sentences, else runs of words. */
function* piecesOf(blocks: readonly string[], room: number): Generator<{ piece: string; glue: string }> {
  for (const block of blocks) {
    let glue = '\n\n'
    for (const sentence of block.length <= room / 2 ? [block] : sentencesOf(block)) {
      for (const piece of wordsWithin(sentence, room)) {
        yield { piece, glue }
        glue = ' '
      }
    }
  }
}

function sentencesOf(text: string): string[] {
  return text
    .split(/(?<=[.!?。！？]["')\]]?)\s+|\n/u)
    .map((sentence) => sentence.trim())
    .filter((sentence) => sentence !== '')
}

function* wordsWithin(text: string, room: number): Generator<string> {
  let rest = text
  while (rest.length > room) {
    const space = rest.lastIndexOf(' ', room)
    // Does not cut inside a surrogate pair.
    const hard = /[\uD800-\uDBFF]/.test(rest.charAt(room - 1)) ? room - 1 : room
    const end = space > room / 2 ? space : Math.max(1, hard)
    yield rest.slice(0, end).trim()
    rest = rest.slice(end).trim()
  }
  if (rest !== '') yield rest
}
