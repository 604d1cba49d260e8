import type { Attributes, DocumentFilter } from '../domain/corpus.ts'

/** The same conditions as `filter-sql.ts`. */
export function matchesFilter(attributes: Attributes, filter: DocumentFilter | undefined): boolean {
  if (filter === undefined) return true
  if ('filters' in filter) {
    if (filter.filters.length === 0) return true
    return filter.type === 'and'
      ? filter.filters.every((part) => matchesFilter(attributes, part))
      : filter.filters.some((part) => matchesFilter(attributes, part))
  }
  const has = attributes[filter.key]
  const { value } = filter
  switch (filter.type) {
    case 'eq':
      return has === value
    case 'ne':
      return has !== value
    case 'in':
      return has !== undefined && [value].flat().includes(has as string)
    case 'nin':
      return has === undefined || ![value].flat().includes(has as string)
    default:
      return (
        has !== undefined && typeof has === typeof value && isOrdered(filter.type, compare(has, value as typeof has))
      )
  }
}

function compare(a: string | number | boolean, b: string | number | boolean): number {
  return a < b ? -1 : a > b ? 1 : 0
}

function isOrdered(type: 'gt' | 'gte' | 'lt' | 'lte', order: number): boolean {
  if (type === 'gt') return order > 0
  if (type === 'gte') return order >= 0
  return type === 'lt' ? order < 0 : order <= 0
}
