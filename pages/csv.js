// Tables as files for spreadsheets.

/** A cell that a spreadsheet would take for a formula gets an apostrophe. */
const cell = (value) => {
  const text = String(value ?? '')
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text
  return `"${safe.replaceAll('"', '""')}"`
}

export const csvOf = (heads, rows) =>
  [heads, ...rows.map((row) => heads.map((head) => row[head]))].map((line) => line.map(cell).join(',')).join('\r\n')

export function saveCsv(name, heads, rows) {
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob([csvOf(heads, rows)], { type: 'text/csv' }))
  link.download = name
  link.click()
  URL.revokeObjectURL(link.href)
}
