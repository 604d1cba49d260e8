/** Numbers and text in the page's format. */

export function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

/** JSON for a script element: nothing in it may look like the end of the element. */
export function escapeJson(value: unknown): string {
  return JSON.stringify(value).replaceAll('<', '\\u003c')
}

export function formatNumber(value: number | undefined, unit: 'ms' | '%' | ''): string {
  if (value === undefined || Number.isNaN(value)) return '–'
  if (!Number.isFinite(value)) return 'never'
  if (unit === '%') return `${short(100 * value)} %`
  if (unit === 'ms') return value >= 1_000 ? `${short(value / 1_000)} s` : `${short(value)} ms`
  return short(value)
}

function short(value: number): string {
  const size = Math.abs(value)
  if (size >= 10_000_000) return `${trim((value / 1_000_000).toPrecision(3))} M`
  if (size >= 10_000) return `${trim((value / 1_000).toFixed(size >= 100_000 ? 0 : 1))} k`
  if (size >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString('en-US')
  return trim(value.toPrecision(3))
}

const trim = (text: string): string => (text.includes('.') ? text.replace(/\.?0+$/, '') : text)
