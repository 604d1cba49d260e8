/**
 * Prometheus text format 0.0.4, as our own registry writes it, back into numbers: for readers that want JSON or another
 * protocol. One form of the metrics is made, and everything else is made from it, so that no two of them disagree. A
 * line that is not of that form is left out.
 */
export interface ExpositionFamily {
  readonly name: string
  readonly kind: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly samples: readonly ExpositionSample[]
}

export interface ExpositionSample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g

export function readExposition(text: string): ExpositionFamily[] {
  const families: ExpositionFamily[] = []
  let help = ''
  let samples: ExpositionSample[] = []
  for (const line of text.split('\n')) {
    if (line.startsWith('# HELP ')) help = unescaped(line.slice(line.indexOf(' ', 7) + 1))
    else if (line.startsWith('# TYPE ')) {
      const [, , name = '', kind] = line.split(' ')
      samples = []
      if (isKind(kind)) families.push({ name, kind, help, samples })
    } else {
      const sample = line === '' || line.startsWith('#') ? undefined : sampleOf(line)
      if (sample !== undefined) samples.push(sample)
    }
  }
  return families
}

const isKind = (kind: string | undefined): kind is ExpositionFamily['kind'] =>
  kind === 'counter' || kind === 'gauge' || kind === 'histogram'

function sampleOf(line: string): ExpositionSample | undefined {
  const space = line.lastIndexOf(' ')
  const value = numberOf(line.slice(space + 1))
  if (space < 0 || Number.isNaN(value)) return undefined
  const brace = line.indexOf('{')
  if (brace < 0 || brace > space) return { name: line.slice(0, space), labels: {}, value }
  const labels: Record<string, string> = {}
  for (const [, name = '', text = ''] of line.slice(brace, space).matchAll(LABEL)) labels[name] = unescaped(text)
  return { name: line.slice(0, brace), labels, value }
}

function numberOf(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY
  if (text === '-Inf') return Number.NEGATIVE_INFINITY
  return text === '' ? Number.NaN : Number(text)
}

const unescaped = (text: string): string =>
  text.includes('\\') ? text.replaceAll(/\\(.)/g, (_, c: string) => (c === 'n' ? '\n' : c)) : text

/** One series of a histogram, its buckets not summed up. */
export interface HistogramSeries {
  readonly labels: Readonly<Record<string, string>>
  readonly bounds: readonly number[]
  /** One more than bounds: the last is what is above all of them. */
  readonly counts: readonly number[]
  readonly sum: number
  readonly count: number
}

export function histogramsIn({ name, samples }: ExpositionFamily): HistogramSeries[] {
  const series = new Map<string, { labels: Record<string, string>; bounds: number[]; upTo: number[]; sum: number }>()
  for (const sample of samples) {
    const { le, ...labels } = sample.labels
    const key = JSON.stringify(labels)
    let one = series.get(key)
    if (one === undefined) {
      one = { labels, bounds: [], upTo: [], sum: 0 }
      series.set(key, one)
    }
    if (sample.name === `${name}_sum`) one.sum = sample.value
    if (sample.name !== `${name}_bucket` || le === undefined) continue
    one.upTo.push(sample.value)
    if (le !== '+Inf') one.bounds.push(Number(le))
  }
  return [...series.values()].map(({ labels, bounds, upTo, sum }) => {
    const counts = upTo.map((count, i) => count - (i === 0 ? 0 : (upTo[i - 1] as number)))
    return { labels, bounds, counts, sum, count: upTo[upTo.length - 1] ?? 0 }
  })
}
