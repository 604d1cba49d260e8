/** A few lines over seconds as an SVG that stands alone: for pages that are read where there is no script. */
export interface Lines {
  readonly title: string
  readonly lines: ReadonlyArray<{ readonly name: string; readonly values: readonly number[] }>
  /** Stretches to shade, by name. */
  readonly marks: Readonly<Record<string, { readonly fromS: number; readonly toS: number }>>
}

const WIDTH = 860
const HEIGHT = 300
const LEFT = 44
const RIGHT = 120
const TOP = 34
const BOTTOM = 28
/** Okabe and Ito's colours: told apart by everybody. */
const COLORS = ['#0072b2', '#e69f00', '#cc79a7', '#009e73', '#d55e00', '#56b4e9']

export function linesSvg({ title, lines, marks }: Lines): string {
  const seconds = Math.max(...lines.map(({ values }) => values.length))
  const most = Math.max(1, ...lines.flatMap(({ values }) => values))
  const x = (s: number): number => LEFT + (s / seconds) * (WIDTH - LEFT - RIGHT)
  const y = (value: number): number => HEIGHT - BOTTOM - (value / most) * (HEIGHT - TOP - BOTTOM)
  const shades = Object.entries(marks).map(
    ([name, { fromS, toS }]) =>
      `<rect x="${x(fromS)}" y="${TOP}" width="${x(toS) - x(fromS)}" height="${HEIGHT - TOP - BOTTOM}" fill="#8883" opacity="0.35"/>` +
      `<text x="${(x(fromS) + x(toS)) / 2}" y="${TOP + 13}" text-anchor="middle" opacity="0.7">${name}</text>`,
  )
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => {
    const at = y(part * most)
    return (
      `<path d="M${LEFT} ${at}H${WIDTH - RIGHT}" stroke="#8886" stroke-width="0.5"/>` +
      `<text x="${LEFT - 6}" y="${at + 4}" text-anchor="end">${(part * most).toFixed(most < 10 ? 1 : 0)}</text>`
    )
  })
  const times = Array.from({ length: Math.floor(seconds / 10) + 1 }, (_, i) => i * 10).map(
    (s) => `<text x="${x(s)}" y="${HEIGHT - 8}" text-anchor="middle">${s} s</text>`,
  )
  const paths = lines.map(({ name, values }, i) => {
    const color = COLORS[i % COLORS.length]
    const points = values.map((value, s) => `${x(s + 0.5).toFixed(1)},${y(value).toFixed(1)}`).join(' ')
    const legendY = TOP + 16 + 18 * i
    return (
      `<polyline fill="none" stroke="${color}" stroke-width="1.6" points="${points}"/>` +
      `<path d="M${WIDTH - RIGHT + 10} ${legendY - 4}h16" stroke="${color}" stroke-width="3"/>` +
      `<text x="${WIDTH - RIGHT + 32}" y="${legendY}">${name}</text>`
    )
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" font-family="system-ui, sans-serif" font-size="12" fill="#444">
<title>${title}</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>
<text x="${LEFT}" y="20" font-size="14" font-weight="600">${title}</text>
${[...shades, ...ticks, ...times, ...paths].join('\n')}
</svg>
`
}
