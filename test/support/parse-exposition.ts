/**
 * A strict reader of Prometheus text format 0.0.4, stricter than Prometheus itself: it throws on anything that a
 * careful writer would not write. For tests.
 */
export interface Sample {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export interface ParsedFamily {
  readonly name: string
  readonly kind: string
  readonly help: string
  readonly samples: Sample[]
}

export function parseExposition(text: string): Map<string, ParsedFamily> {
  if (text !== '' && !text.endsWith('\n')) throw new Error('the last line does not end')
  const families = new Map<string, ParsedFamily>()
  const seen = new Set<string>()
  const lines = text.split('\n').slice(0, -1)
  let family: ParsedFamily | undefined
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] as string
    if (line.startsWith('# HELP ')) {
      family = parseHead(line, lines[++i] ?? '')
      if (families.has(family.name)) throw new Error(`family ${family.name} comes twice`)
      families.set(family.name, family)
      continue
    }
    if (family === undefined) throw new Error(`sample before any family: ${line}`)
    const sample = parseSample(line)
    if (!sampleNamesOf(family).includes(sample.name)) throw new Error(`${sample.name} is not of ${family.name}`)
    const identity = `${sample.name} ${identityOf(sample.labels)}`
    if (seen.has(identity)) throw new Error(`series comes twice: ${identity}`)
    seen.add(identity)
    family.samples.push(sample)
  }
  for (const each of families.values()) if (each.kind === 'histogram') checkHistogram(each)
  return families
}

/** The value of the one sample with this name and exactly these labels. */
export function sampleValue(text: string, name: string, labels: Record<string, string> = {}): number | undefined {
  const wanted = identityOf(labels)
  for (const family of parseExposition(text).values())
    for (const sample of family.samples)
      if (sample.name === name && identityOf(sample.labels) === wanted) return sample.value
  return undefined
}

/** Label sets are equal whatever the order of their labels. */
function identityOf(labels: Readonly<Record<string, string>>): string {
  const names = Object.keys(labels).toSorted((a, b) => (a < b ? -1 : 1))
  return JSON.stringify(names.map((name) => [name, labels[name]]))
}

function parseHead(helpLine: string, typeLine: string): ParsedFamily {
  const help = /^# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.*)$/s.exec(helpLine)
  const type = /^# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)$/.exec(typeLine)
  if (help === null || type === null || help[1] !== type[1]) throw new Error(`bad head: ${helpLine} / ${typeLine}`)
  return { name: help[1] as string, kind: type[2] as string, help: unescaped(help[2] as string, 'n\\'), samples: [] }
}

function sampleNamesOf({ name, kind }: ParsedFamily): string[] {
  return kind === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name]
}

const NUMBER = /^(?:[+-]?Inf|NaN|[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)$/

function parseSample(line: string): Sample {
  const match = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? ([^ ]+)$/s.exec(line)
  if (match === null) throw new Error(`bad sample: ${line}`)
  const number = match[3] as string
  if (!NUMBER.test(number)) throw new Error(`bad number: ${line}`)
  return { name: match[1] as string, labels: parseLabels(match[2] ?? ''), value: toNumber(number) }
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {}
  const pattern = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(,|$)/sy
  while (pattern.lastIndex < text.length) {
    const match = pattern.exec(text)
    if (match === null) throw new Error(`bad labels: ${text}`)
    const name = match[1] as string
    if (Object.hasOwn(labels, name)) throw new Error(`label ${name} comes twice: ${text}`)
    labels[name] = unescaped(match[2] as string, 'n\\"')
    if (match[3] === '' && pattern.lastIndex !== text.length) throw new Error(`bad labels: ${text}`)
    if (match[3] === ',' && pattern.lastIndex === text.length) throw new Error(`comma at the end: ${text}`)
  }
  return labels
}

function unescaped(text: string, allowed: string): string {
  return text.replace(/\\(.?)/gs, (_, escaped: string) => {
    if (escaped === '' || !allowed.includes(escaped)) throw new Error(`bad escape \\${escaped}`)
    return escaped === 'n' ? '\n' : escaped
  })
}

function toNumber(text: string): number {
  return text.endsWith('Inf')
    ? text.startsWith('-')
      ? Number.NEGATIVE_INFINITY
      : Number.POSITIVE_INFINITY
    : Number(text)
}

function checkHistogram(family: ParsedFamily): void {
  const series = new Map<string, Sample[]>()
  for (const sample of family.samples) {
    const { le: _, ...rest } = sample.labels
    const key = identityOf(rest)
    series.set(key, [...(series.get(key) ?? []), sample])
  }
  for (const [key, samples] of series) {
    const of = (suffix: string) => samples.filter((sample) => sample.name === `${family.name}_${suffix}`)
    const buckets = of('bucket')
    const les = buckets.map((bucket) => toNumber(bucket.labels['le'] ?? ''))
    const counts = buckets.map((bucket) => bucket.value)
    if (of('sum').length !== 1 || of('count').length !== 1) throw new Error(`sum and count of ${family.name}${key}`)
    if (les.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`no +Inf bucket in ${family.name}${key}`)
    if (counts.at(-1) !== of('count')[0]?.value) throw new Error(`+Inf is not the count in ${family.name}${key}`)
    for (let i = 1; i < les.length; i++) {
      if (!((les[i - 1] as number) < (les[i] as number)))
        throw new Error(`bounds do not ascend in ${family.name}${key}`)
      if ((counts[i - 1] as number) > (counts[i] as number)) throw new Error(`buckets shrink in ${family.name}${key}`)
    }
  }
}
