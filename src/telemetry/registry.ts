import { assert } from '../base/assert.ts'
import { CounterCell, GaugeCell, HistogramCell } from './cells.ts'
import { escapeHelp, formatLabels, formatMetricValue } from './exposition.ts'

/**
 * What are the numbers right now, in the words that Prometheus reads?
 *
 * A family is a metric with label names; `with(...)` finds the cell of one set of label values, and a cell is a plain
 * number or a small array. Finding a cell walks one Map per label and joins no strings, so it can be done for every
 * entry. Texts that never change (names, labels, bucket bounds) are made once, when a series is born: a scrape only
 * concatenates. docs/adr/0008 has the measurements that led here.
 *
 * Two bounds hold whatever the callers do: a family has at most `seriesMax` series, further ones share one whose labels
 * all say `other`; and a value that is not a number is ignored, so that one bad sample cannot spoil a sum for ever.
 */
export type MetricKind = 'counter' | 'gauge' | 'histogram'

export interface FamilyView {
  readonly name: string
  readonly kind: MetricKind
  readonly help: string
  readonly labelNames: readonly string[]
}

export interface MetricOptions<L extends readonly string[]> {
  readonly name: string
  readonly help: string
  readonly labels?: L
  /** Beyond this many label sets a family only counts `other`. */
  readonly seriesMax?: number
}

export interface HistogramOptions<L extends readonly string[]> extends MetricOptions<L> {
  /** Upper bounds in the unit of what is observed, ascending, without infinity. */
  readonly bounds: readonly number[]
  /** How many of that unit make one of the metric's: 1e6 for microseconds shown as seconds. Sums stay whole numbers. */
  readonly perUnit?: number
}

/** The text of a label beyond the bound, here and in `top-labels.ts`. */
export const OTHER = 'other'

/** The format that `Registry.text` writes, for the Content-Type header. */
export const EXPOSITION_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** A thousand series of a histogram are a megabyte of text, more than a scrape of one metric should cost. */
const SERIES_MAX = 1_000

type LabelValues<L extends readonly string[]> = { readonly [I in keyof L]: string }

export class Registry {
  readonly #families = new Map<string, { readonly view: FamilyView; write(hasExemplars: boolean): string }>()
  readonly #beforeScrape: Array<() => void> = []

  counter<const L extends readonly string[] = []>(options: MetricOptions<L>): Family<L, CounterCell> {
    assert(options.name.endsWith('_total'), `counter ${options.name} ends in _total`)
    return this.#add('counter', options, (name, labels) => new CounterCell(name, labels))
  }

  gauge<const L extends readonly string[] = []>(options: MetricOptions<L>): Family<L, GaugeCell> {
    return this.#add('gauge', options, (name, labels) => new GaugeCell(name, labels))
  }

  histogram<const L extends readonly string[] = []>(options: HistogramOptions<L>): Family<L, HistogramCell> {
    const bounds = Float64Array.from(options.bounds)
    const perUnit = options.perUnit ?? 1
    for (let i = 1; i < bounds.length; i++)
      assert((bounds[i - 1] as number) < (bounds[i] as number), `bounds of ${options.name} ascend`)
    const boundTexts = [...bounds].map((bound) => formatMetricValue(bound / perUnit))
    return this.#add(
      'histogram',
      options,
      (name, labels) => new HistogramCell(name, labels, { bounds, boundTexts, perUnit }),
    )
  }

  /** Registers a sampler, called at the start of every scrape. A sampler that throws is skipped. */
  beforeScrape(sample: () => void): void {
    this.#beforeScrape.push(sample)
  }

  families(): FamilyView[] {
    return [...this.#families.values()].map((family) => family.view)
  }

  /** Everything, in Prometheus text format 0.0.4; with exemplars it is for `toOpenMetrics`. */
  text(hasExemplars = false): string {
    for (const sample of this.#beforeScrape) {
      try {
        sample()
      } catch {
        // A sampler that fails leaves its last values; the other metrics must still be written.
      }
    }
    let text = ''
    for (const family of this.#families.values()) text += family.write(hasExemplars)
    return text
  }

  #add<L extends readonly string[], C extends Cell>(
    kind: MetricKind,
    options: MetricOptions<L>,
    makeCell: (name: string, labels: string) => C,
  ): Family<L, C> {
    const labelNames = options.labels ?? []
    // Colons are for recording rules and for names given by others (`vllm:…`); our own names have none.
    assert(/^[a-z][a-z0-9_:]*$/.test(options.name), `metric name ${options.name} is lower case`)
    assert(!this.#families.has(options.name), `metric ${options.name} is registered once`)
    for (const label of labelNames)
      assert(/^[a-z][a-z0-9_]*$/.test(label) && label !== 'le' && label !== 'quantile', `label ${label} may be used`)
    const view = { name: options.name, kind, help: options.help, labelNames }
    const family = new Family<L, C>(view, options.seriesMax ?? SERIES_MAX, makeCell)
    this.#families.set(options.name, family)
    return family
  }
}

interface Cell {
  write(hasExemplars?: boolean): string
}

/** One Map per label; the last one holds cells. */
type Branch<C> = Map<string, Branch<C> | C>

/** A metric with its series. */
export class Family<L extends readonly string[], C extends Cell> {
  readonly view: FamilyView
  readonly #seriesMax: number
  readonly #makeCell: (name: string, labels: string) => C
  readonly #head: string
  /**
   * Cells by label text, in order of creation: this is what is written, and it keeps two spellings of one text one
   * series.
   */
  readonly #cells = new Map<string, C>()
  readonly #root: Branch<C> = new Map()
  #only: C | undefined

  constructor(view: FamilyView, seriesMax: number, makeCell: (name: string, labels: string) => C) {
    this.view = view
    this.#seriesMax = seriesMax
    this.#makeCell = makeCell
    this.#head = `# HELP ${view.name} ${escapeHelp(view.help)}\n# TYPE ${view.name} ${view.kind}\n`
  }

  /** The cell of these label values, made on first use. Do not keep it across a `forget`. */
  with(...values: LabelValues<L>): C {
    const last = values.length - 1
    if (last < 0) {
      this.#only ??= this.#birth([])
      return this.#only
    }
    let branch = this.#root
    for (let i = 0; i < last; i++) {
      let next = branch.get(values[i] as string) as Branch<C> | undefined
      if (next === undefined) {
        if (this.#cells.size >= this.#seriesMax) return this.#overflow()
        next = new Map()
        branch.set(values[i] as string, next)
      }
      branch = next
    }
    const known = branch.get(values[last] as string) as C | undefined
    if (known !== undefined) return known
    if (this.#cells.size >= this.#seriesMax) return this.#overflow()
    const cell = this.#birth(values)
    branch.set(values[last] as string, cell)
    return cell
  }

  /** Drops every series whose first label has this value. */
  forget(firstValue: string): void {
    const branch = this.#root.get(firstValue)
    if (branch === undefined) return
    this.#root.delete(firstValue)
    const gone = new Set(cellsOf(branch, this.view.labelNames.length - 1))
    for (const [labels, cell] of this.#cells) if (gone.has(cell)) this.#cells.delete(labels)
  }

  get seriesCount(): number {
    return this.#cells.size
  }

  write(hasExemplars = false): string {
    let text = this.#head
    for (const cell of this.#cells.values()) text += cell.write(hasExemplars)
    return text
  }

  /** The overflow cell is not in the tree: which label sets overflowed must not take room. */
  #overflow(): C {
    return this.#birth(this.view.labelNames.map(() => OTHER))
  }

  #birth(values: readonly string[]): C {
    const labels = formatLabels(this.view.labelNames, values)
    const known = this.#cells.get(labels)
    if (known !== undefined) return known
    const cell = this.#makeCell(this.view.name, labels)
    this.#cells.set(labels, cell)
    return cell
  }
}

function cellsOf<C>(branch: Branch<C> | C, depth: number): C[] {
  if (depth === 0) return [branch as C]
  return [...(branch as Branch<C>).values()].flatMap((next) => cellsOf(next, depth - 1))
}
