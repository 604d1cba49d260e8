// What waits, as a tree: org → tenant → key.
import { column, html, numbers, Table } from './view.js'

/** Sums by the first name of rows, the most first, with the rows below each. */
function grouped(rows) {
  const groups = new Map()
  for (const [name, ...rest] of rows) groups.set(name, [...(groups.get(name) ?? []), rest])
  return [...groups]
    .map(([name, below]) => ({ name, below, waiting: below.reduce((sum, row) => sum + row.at(-1), 0) }))
    .sort((a, b) => b.waiting - a.waiting)
}

const bar = (name, waiting, most) =>
  html`<meter min="0" max=${most} value=${waiting} aria-label=${`${waiting} of ${name} waiting`}></meter>`

/** Rows of the table: a group, and the groups in it, each a step further in. */
function treeRows(rows, depth, most) {
  return grouped(rows).flatMap(({ name, below, waiting }) => [
    [
      html`<span class=${`step-${depth}`}>${name}</span>`,
      ['org', 'tenant', 'key'][depth],
      bar(name, waiting, most),
      waiting,
    ],
    ...(below[0].length > 1 ? treeRows(below, depth + 1, most) : []),
  ])
}

export function Queue({ queue }) {
  const { rows, rest, restKeys } = queue
  const most = Math.max(1, rest, ...grouped(rows).map(({ waiting }) => waiting))
  const other =
    rest > 0
      ? [[html`<span class="quiet">${restKeys} or more other keys</span>`, 'keys', bar('other keys', rest, most), rest]]
      : []
  return html`<section><h2>Queue</h2>
    <${Table} caption="Requests that wait now, by org, tenant and key (spillway_queue_depth): the 20 keys with most" heads=${[column('who'), column('is a'), column(''), ...numbers('waiting')]}
      rows=${[...treeRows(rows, 0, most), ...other]} empty="Nothing waits." />
  </section>`
}
