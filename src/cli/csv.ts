/**
 * Tables for spreadsheets (RFC 4180). A cell of text that a spreadsheet would run as a formula gets an apostrophe in
 * front: names come from clients. Numbers stay numbers. A cell without a value is empty; an empty text is `""`.
 */
export type Cell = string | number | null

export function csvOf(rows: ReadonlyArray<readonly Cell[]>): string {
  return rows.map((row) => `${row.map(cellText).join(',')}\r\n`).join('')
}

const IS_NUMBER = /^-?\d+(\.\d+)?$/

function cellText(cell: Cell): string {
  if (cell === null) return ''
  if (typeof cell === 'number') return String(cell)
  if (IS_NUMBER.test(cell)) return cell
  const safe = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell
  return safe === '' || /[",\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}

/** The way back. An empty cell without quotes is null. A file that ends within quotes is undefined. */
export function parseCsv(text: string): ReadonlyArray<ReadonlyArray<string | null>> | undefined {
  const rows: Array<Array<string | null>> = []
  let row: Array<string | null> = []
  let at = 0
  while (at < text.length) {
    const quoted = text[at] === '"'
    const end = quoted ? closingQuote(text, at) : plainEnd(text, at)
    if (end === undefined) return undefined
    const cell = quoted ? text.slice(at + 1, end - 1).replaceAll('""', '"') : text.slice(at, end)
    row.push(!quoted && cell === '' ? null : cell)
    at = end
    if (text[at] === ',') {
      at++
      // A row that ends with a comma has one more empty cell.
      if (at < text.length && text[at] !== '\r' && text[at] !== '\n') continue
      row.push(null)
    }
    if (text[at] === '\r') at++
    if (text[at] === '\n') at++
    else if (at < text.length) return undefined
    rows.push(row)
    row = []
  }
  return rows
}

/** Behind the quote that ends a cell. */
function closingQuote(text: string, from: number): number | undefined {
  let at = from + 1
  for (;;) {
    const quote = text.indexOf('"', at)
    if (quote === -1) return undefined
    if (text[quote + 1] !== '"') return quote + 1
    at = quote + 2
  }
}

function plainEnd(text: string, from: number): number {
  let at = from
  while (at < text.length && text[at] !== ',' && text[at] !== '\r' && text[at] !== '\n') at++
  return at
}
