import { escapeHtml, formatNumber } from './format.ts'

/**
 * One plot as HTML and SVG. The drawing is stretched to the available width, with strokes of constant thickness; all
 * text (labels, legend, values) is HTML beside it, so that it keeps its size. The page needs no script to be read, on a
 * wall or on a telephone.
 */
export interface PlotSeries {
  readonly name: string
  /** A colour of the style sheet: `var(--NAME)`. */
  readonly color: string
  /** `stack` lies on the series before it; `dashed` is a promise, not a measurement. */
  readonly kind: 'line' | 'area' | 'stack' | 'dashed'
  readonly values: readonly (number | undefined)[]
}

export interface Plot {
  readonly id: string
  readonly title: string
  readonly caption: string
  readonly series: readonly PlotSeries[]
  readonly atS: readonly number[]
  /** Names of the places on the horizontal axis, where it is not time. */
  readonly labels?: readonly string[]
  readonly unit: 'ms' | '%' | ''
  /** End of the axis, for all values. */
  readonly max?: number
  readonly isLogarithmic?: boolean
  readonly height?: number
}

/** Units of the drawing, which are stretched. */
const WIDTH = 1_000
const HEIGHT = 100

export function renderPlot(plot: Plot): string {
  const axis = axisOf(plot)
  const shapes = shapesOf(plot, axis)
  const grid = axis.ticks.map(({ at }) => `<path class="grid" d="M0 ${round(at)}H${WIDTH}"/>`).join('')
  const labels = axis.ticks
    .map(({ at, label }) => `<span style="top:${round(at)}%">${escapeHtml(label)}</span>`)
    .join('')
  const describe = `${plot.title}: ${plot.series.map(({ name }) => name).join(', ')}${plot.labels === undefined ? ' over time' : ''}`
  return `<figure class="card plot" id="${plot.id}">
<figcaption><h2>${escapeHtml(plot.title)}</h2><p>${escapeHtml(plot.caption)}</p></figcaption>
${legendOf(plot.series)}
<div class="frame" style="--height:${plot.height ?? 168}px"><div class="ylabels">${labels}</div>
<div class="canvas" tabindex="0" data-plot="${plot.id}">
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${escapeHtml(describe)}">${grid}${shapes}</svg>
<i class="cursor"></i><div class="tip"></div></div>
<div class="xlabels">${plot.labels === undefined ? timeLabels(plot.atS) : nameLabels(plot.labels)}</div></div>
</figure>`
}

export function legendOf(series: readonly Pick<PlotSeries, 'name' | 'color' | 'kind'>[]): string {
  if (series.length < 2) return ''
  const items = series.map(
    ({ name, color, kind }) => `<li><i class="key ${kind}" style="--color:${color}"></i>${escapeHtml(name)}</li>`,
  )
  return `<ul class="legend">${items.join('')}</ul>`
}

// ── Where a value lies ─────────────────────────────────────────────────────────────────────────────────────────────

interface Axis {
  /** Distance from the top, in units of the drawing. Infinite values are at the top. */
  readonly place: (value: number) => number
  readonly ticks: ReadonlyArray<{ readonly at: number; readonly label: string }>
}

function axisOf(plot: Plot): Axis {
  const stacked = stackTops(plot.series)
  const values = [...plot.series.filter(({ kind }) => kind !== 'stack').flatMap((series) => series.values), ...stacked]
  const finite = values.filter((value): value is number => value !== undefined && Number.isFinite(value))
  const label = (value: number): string => formatNumber(value, plot.unit)
  const largest = finite.reduce((most, value) => Math.max(most, value), 0)
  return plot.isLogarithmic === true
    ? logarithmic(finite, largest, label)
    : linear(plot.max ?? Math.max(largest * 1.05, 1e-9), plot.max !== undefined, label)
}

function linear(max: number, isExact: boolean, label: (value: number) => string): Axis {
  const step = niceStep(max / 3)
  const top = isExact ? max : Math.ceil(max / step) * step
  const place = (value: number): number => HEIGHT * (1 - Math.min(1, Math.max(0, value / top)))
  const ticks = []
  for (let value = 0; value <= top * 1.0001; value += step) ticks.push({ at: place(value), label: label(value) })
  return { place, ticks }
}

function logarithmic(values: readonly number[], largest: number, label: (value: number) => string): Axis {
  const smallest = values.reduce((least, value) => (value > 0 ? Math.min(least, value) : least), largest || 1)
  const low = Math.floor(Math.log10(Math.max(1e-3, smallest)))
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(1e-3, largest * 1.05))))
  const place = (value: number): number => {
    const ratio = (Math.log10(Math.max(1e-9, value)) - low) / (high - low)
    return HEIGHT * (1 - Math.min(1, Math.max(0, ratio)))
  }
  const ticks = []
  for (let power = low; power <= high; power++) ticks.push({ at: place(10 ** power), label: label(10 ** power) })
  return { place, ticks }
}

/** 1, 2 or 5 times a power of ten, at least this. */
function niceStep(wanted: number): number {
  const power = 10 ** Math.floor(Math.log10(wanted))
  for (const factor of [1, 2, 5]) if (wanted <= factor * power) return factor * power
  return 10 * power
}

/** Five labels at most: more would touch on a telephone. */
const TIME_LABELS_MAX = 5

function timeLabels(atS: readonly number[]): string {
  const from = atS[0] ?? 0
  const to = atS.at(-1) ?? 1
  const step = TIME_STEPS.find((seconds) => (to - from) / seconds < TIME_LABELS_MAX) ?? niceStep((to - from) / 4)
  const labels = []
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
    const left = to === from ? 0 : (100 * (at - from)) / (to - from)
    // A label at an edge stays inside the plot.
    const edge = left > 95 ? ' class="end"' : ''
    labels.push(`<span${edge} style="left:${round(left)}%">${clockTime(at)}</span>`)
  }
  return labels.join('')
}

function nameLabels(labels: readonly string[]): string {
  const every = Math.ceil(labels.length / NAME_LABELS_MAX)
  return labels
    .map((label, i) => {
      if (i % every !== 0) return ''
      const left = labels.length < 2 ? 0 : (100 * i) / (labels.length - 1)
      return `<span${left > 95 ? ' class="end"' : ''} style="left:${round(left)}%">${escapeHtml(label)}</span>`
    })
    .join('')
}

/** Short names: twice as many as times. */
const NAME_LABELS_MAX = 10

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 21_600, 43_200]

export function clockTime(seconds: number): string {
  const two = (value: number): string => String(value).padStart(2, '0')
  const hours = Math.floor(seconds / 3_600)
  const rest = `${two(Math.floor((seconds % 3_600) / 60))}:${two(Math.floor(seconds % 60))}`
  return hours > 0 ? `${hours}:${rest}` : rest
}

// ── Shapes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function shapesOf(plot: Plot, axis: Axis): string {
  const x = xs(plot.atS.length)
  const below: number[] = plot.atS.map(() => 0)
  return plot.series
    .map(({ kind, color, values }) => {
      if (kind === 'stack') {
        const from = [...below]
        values.forEach((value, i) => {
          below[i] = (below[i] ?? 0) + (value ?? 0)
        })
        return `<path class="fill" style="--color:${color}" d="${bandPath(x, below.map(axis.place), from.map(axis.place))}"/>`
      }
      const line = linePath(x, values, axis)
      if (line === '') return ''
      const area =
        kind === 'area'
          ? `<path class="wash" style="--color:${color}" d="${bandPath(
              x,
              values.map((value) => axis.place(value ?? 0)),
              values.map(() => HEIGHT),
            )}"/>`
          : ''
      return `${area}<path class="${kind === 'dashed' ? 'promise' : 'line'}" style="--color:${color}" d="${line}"/>`
    })
    .join('')
}

const xs = (count: number): number[] =>
  Array.from({ length: count }, (_, i) => (count < 2 ? 0 : (WIDTH * i) / (count - 1)))

/** A window without a value is a gap, not a zero. */
function linePath(x: readonly number[], values: readonly (number | undefined)[], axis: Axis): string {
  let path = ''
  let isOpen = false
  values.forEach((value, i) => {
    if (value === undefined || Number.isNaN(value)) {
      isOpen = false
      return
    }
    path += `${isOpen ? 'L' : 'M'}${round(x[i] ?? 0)} ${round(axis.place(value))}`
    // A lone point has no length, and a round cap makes it a dot.
    if (!isOpen && values[i + 1] === undefined) path += 'h0'
    isOpen = true
  })
  return path
}

function bandPath(x: readonly number[], top: readonly number[], bottom: readonly number[]): string {
  const over = top.map((y, i) => `${round(x[i] ?? 0)} ${round(y)}`)
  const under = bottom.map((y, i) => `${round(x[i] ?? 0)} ${round(y)}`).toReversed()
  return over.length === 0 ? '' : `M${over.join('L')}L${under.join('L')}Z`
}

function stackTops(series: readonly PlotSeries[]): number[] {
  const tops: number[] = []
  for (const { kind, values } of series) {
    if (kind !== 'stack') continue
    values.forEach((value, i) => {
      tops[i] = (tops[i] ?? 0) + (value ?? 0)
    })
  }
  return tops
}

const round = (value: number): number => Math.round(value * 100) / 100
