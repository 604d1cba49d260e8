import type { DocumentFilter } from '../domain/corpus.ts'
import type { Parameter } from './database.ts'

/**
 * A filter over a document's attributes as SQL. Keys and values are parameters, never text of the statement. A
 * comparison with an attribute that is absent, or of another type, is false; its negation (`ne`, `nin`) is true.
 */
export function filterSql(filter: DocumentFilter | undefined, parameters: Parameter[]): string {
  return filter === undefined ? '' : ` and ${condition(filter, parameters, 0)}`
}

/** Deepest nesting of a filter that a person would write. */
const DEPTH_MAX = 8

const ORDER = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const

function condition(filter: DocumentFilter, parameters: Parameter[], depth: number): string {
  if (depth > DEPTH_MAX) return 'false'
  if ('filters' in filter) {
    const parts = filter.filters.map((part) => condition(part, parameters, depth + 1))
    return parts.length === 0 ? 'true' : `(${parts.join(filter.type === 'and' ? ' and ' : ' or ')})`
  }
  const bind = (value: Parameter): string => `$${parameters.push(value)}::text`
  const attribute = `d.attributes -> ${bind(filter.key)}`
  const json = bind(JSON.stringify(filter.value))
  switch (filter.type) {
    case 'eq':
      return `coalesce(${attribute} = ${json}::jsonb, false)`
    case 'ne':
      return `coalesce(${attribute} <> ${json}::jsonb, true)`
    case 'in':
      return `coalesce(${json}::jsonb @> (${attribute}), false)`
    case 'nin':
      return `not coalesce(${json}::jsonb @> (${attribute}), false)`
    default:
      // jsonb orders numbers and texts; two values of different types are not compared.
      return `coalesce(jsonb_typeof(${attribute}) = jsonb_typeof(${json}::jsonb) and ${attribute} ${ORDER[filter.type]} ${json}::jsonb, false)`
  }
}
