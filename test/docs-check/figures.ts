import type { DocCommand } from './doc-commands.ts'

/**
 * Figures of the documentation that a command of the page gives. The page says where each comes from, in a comment behind
 * the figure, which no reader sees:
 *
 *   217 waited at most <!-- figure: queuedMax ±5 % -->
 *   3.9 % of the admitted late <!-- figure: late / admitted × 100 ±0.3 -->
 *   14.2 times <!-- figure: /batch of 16 .* ([\d.]+) times/ ±1 % -->
 *   236 families <!-- figure: count /^# TYPE / ±10 -->
 *   0.84 <!-- figure: engine.busy ±0.02 of npx spillway simulate burst -->
 *
 * A path leads into the command's `--json`, a pattern into its text. Without `of` the command is the last one before the
 * figure on the page. Only what virtual time makes repeatable has a narrow tolerance.
 */
export interface Figure {
  readonly page: string
  readonly line: number
  /** As the page says it: the last number before the comment. */
  readonly stated: number
  readonly source: string
  readonly factor: number
  readonly tolerance: number
  readonly isRelative: boolean
  /** Text of the command that gives it. */
  readonly command: string
}

const COMMENT =
  /<!-- figure: (?<source>(?:(?!-->).)+?)(?: × (?<factor>[\d.]+))? ±(?<tolerance>[\d.]+)(?<percent> %)?(?: of (?<of>.+?))? -->/g
const NUMBER = /-?\d[\d,]*(?:\.\d+)?/g

export function figuresOf(page: string, markdown: string, commands: readonly DocCommand[]): Figure[] {
  return markdown.split('\n').flatMap((text, index) => {
    const line = index + 1
    return [...text.matchAll(COMMENT)].map((match) => {
      const { source, factor = '1', tolerance, percent, of } = match.groups as Record<string, string | undefined>
      const before = text.slice(0, match.index).replaceAll(/<!--.*?-->/g, '')
      const stated = Number(before.match(NUMBER)?.at(-1)?.replaceAll(',', ''))
      const command = of ?? commands.findLast((each) => each.line <= line)?.text
      if (Number.isNaN(stated) || command === undefined) throw new Error(`${page}:${line}: a figure of no command`)
      const numbers = { stated, factor: Number(factor), tolerance: Number(tolerance) }
      return { page, line, source: source!, isRelative: percent !== undefined, command, ...numbers }
    })
  })
}

/** Comments that look like figures and are not read as such. */
export function unreadFigures(markdown: string): string[] {
  return markdown.replaceAll(COMMENT, '').match(/<!-- figure.*?-->/g) ?? []
}

/** What is wrong with the figure, by what the command printed. */
export function figureProblem(figure: Figure, output: string): string | undefined {
  const { page, line, stated, source, factor, tolerance, isRelative } = figure
  const seen = readFigure(source, output)
  if (seen === undefined || Number.isNaN(seen)) return `${page}:${line}: ${source} is not in the output`
  const is = seen * factor
  const allowed = isRelative ? (Math.abs(stated) * tolerance) / 100 : tolerance
  // What is stated is rounded: half of its last digit is no difference.
  if (Math.abs(is - stated) <= allowed + 1e-9) return undefined
  return `${page}:${line}: the page says ${stated}, ${source} is ${Number(is.toPrecision(5))} (±${tolerance}${isRelative ? ' %' : ''})`
}

function readFigure(source: string, output: string): number | undefined {
  const pattern = /^(count )?\/(.+)\/$/.exec(source)
  if (pattern !== null) {
    const expression = new RegExp(pattern[2]!, 'gm')
    const found = [...output.matchAll(expression)]
    if (pattern[1] !== undefined) return found.length
    const text = found[0]?.[1]
    return text === undefined ? undefined : Number(text.replaceAll(',', ''))
  }
  const [over, under] = source.split(' / ').map((path) => pathValue(JSON.parse(output), path.split('.')))
  return under === undefined ? over : over! / under
}

function pathValue(tree: unknown, path: readonly string[]): number | undefined {
  let at = tree
  for (const name of path) at = (at as Record<string, unknown> | undefined)?.[name]
  return typeof at === 'number' ? at : undefined
}
