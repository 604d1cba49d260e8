/** The spelling rules of Prometheus text format 0.0.4. */

export function escapeHelp(text: string): string {
  return text.toWellFormed().replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

/** A label value is any text; half of a surrogate pair becomes U+FFFD, as on any UTF-8 wire. */
export function escapeLabelValue(text: string): string {
  return text.toWellFormed().replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

/** `a="1",b="2"`, without braces, because a histogram adds its `le`. */
export function formatLabels(names: readonly string[], values: readonly string[]): string {
  return names.map((name, i) => `${name}="${escapeLabelValue(values[i] ?? '')}"`).join(',')
}

export function formatMetricValue(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  if (value === Number.NEGATIVE_INFINITY) return '-Inf'
  return String(value)
}
