// What all pages are made of.
import htm from './vendor/htm.js'
import { h } from './vendor/preact.js'

export const html = htm.bind(h)

export const percent = (part, whole) =>
  whole > 0 ? `${((100 * part) / whole).toFixed(part === whole ? 0 : 1)} %` : '–'
export const count = (value) =>
  value >= 1e6
    ? `${(value / 1e6).toFixed(1)} M`
    : value >= 1e4
      ? `${(value / 1e3).toFixed(1)} k`
      : `${Math.round(value)}`
export const perSecond = (ofMinute) => (ofMinute / 60).toFixed(ofMinute < 600 ? 1 : 0)
export const clockTime = (ms) => new Date(ms).toLocaleTimeString()

/** Figures of a party by name, as the feed spells them in columns. */
export function figures(columns, counts) {
  return Object.fromEntries(columns.map((name, i) => [name, counts[i] ?? 0]))
}

/** A word and a colour for a share of kept promises. */
export function standing(kept, broken) {
  if (kept + broken === 0) return { word: 'quiet', tone: 'quiet' }
  const share = kept / (kept + broken)
  if (share >= 0.99) return { word: 'kept', tone: 'good' }
  return share >= 0.95 ? { word: 'kept, slipping', tone: 'warn' } : { word: 'kept: too few', tone: 'bad' }
}

/** Long names of metrics may break after an underscore, and nowhere else. */
const breakable = (text) => String(text).replaceAll('_', '_\u200b')

export function Tile({ title, value, note, tone }) {
  return html`<div class="tile"><span>${title}</span><b class=${tone ?? ''}>${value}</b><span>${breakable(note)}</span></div>`
}

export function Table({ caption, heads, rows, empty }) {
  if (rows.length === 0) return html`<p class="quiet">${empty ?? 'Nothing yet.'}</p>`
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}>
    <table>
      <caption>${caption}</caption>
      <thead><tr>${heads.map((head) => html`<th scope="col" class=${head.number ? 'number' : ''}>${head.name}</th>`)}</tr></thead>
      <tbody>${rows.map(
        (cells) =>
          html`<tr>${cells.map((cell, i) => html`<td class=${heads[i]?.number ? 'number' : ''}>${cell}</td>`)}</tr>`,
      )}</tbody>
    </table>
  </div>`
}

export const column = (name) => ({ name })
export const numbers = (...names) => names.map((name) => ({ name, number: true }))
