import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'

/**
 * The chart as `helm template` renders it, for the few words of its language that `npm run charts` writes: values,
 * `if`, `if not`, `end`, `toYaml | nindent`, `indent`, `fail`. Any other word is an error: Helm itself is not asked.
 */
export type ChartValues = Record<string, unknown>

const CHART = join(import.meta.dirname, '..', '..', 'deploy', 'helm', 'spillway')

export const defaultValues = (): ChartValues => parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as ChartValues

export function renderChart(values: ChartValues, namespace: string): string {
  const files = readdirSync(join(CHART, 'templates')).sort()
  const texts = files.map((file) => render(readFileSync(join(CHART, 'templates', file), 'utf8'), { values, namespace }))
  return texts.join('\n---\n')
}

interface Scope {
  readonly values: ChartValues
  readonly namespace: string
}

function render(template: string, scope: Scope): string {
  let out = ''
  /** One entry for each open `if`: whether its text counts. */
  const open: boolean[] = []
  let rest = template
  for (;;) {
    const from = rest.indexOf('{{')
    const text = from < 0 ? rest : rest.slice(0, from)
    const isTrimmed = from >= 0 && rest.startsWith('{{-', from)
    if (open.every(Boolean)) out += isTrimmed ? text.trimEnd() : text
    if (from < 0) break
    // The braces of a rule's own template stand in quotes.
    const to = rest.startsWith('{{ "{{" }}', from) ? from + '{{ "{{" '.length : rest.indexOf('}}', from)
    const word = rest.slice(from + (isTrimmed ? 3 : 2), to).trim()
    rest = rest.slice(to + 2)
    const condition = /^if (not )?\.Values\.(\S+)$/.exec(word)
    if (condition !== null) open.push(isTrue(valueAt(scope, condition[2]!)) === (condition[1] === undefined))
    else if (word === 'end') open.pop()
    else if (open.every(Boolean)) out += evaluate(word, scope)
  }
  if (open.length > 0) throw new Error('an "if" has no "end"')
  return out
}

function evaluate(word: string, scope: Scope): string {
  if (word === '"{{"') return '{{'
  if (word === '.Release.Namespace') return scope.namespace
  const failure = /^fail "(.*)"$/.exec(word)
  if (failure !== null) throw new Error(failure[1])
  const plain = /^\.Values\.(\S+)$/.exec(word)
  if (plain !== null) return String(valueAt(scope, plain[1]!))
  const indented = /^\.Values\.(\S+) \| indent (\d+)$/.exec(word)
  if (indented !== null) return indent(String(valueAt(scope, indented[1]!)), Number(indented[2]))
  const block = /^toYaml \.Values\.(\S+) \| nindent (\d+)$/.exec(word)
  if (block !== null) return `\n${indent(stringify(valueAt(scope, block[1]!)).trimEnd(), Number(block[2]))}`
  throw new Error(`the chart uses "${word}", which is not rendered here`)
}

const indent = (text: string, by: number): string =>
  text
    .split('\n')
    .map((line) => ' '.repeat(by) + line)
    .join('\n')

const isTrue = (value: unknown): boolean => (Array.isArray(value) ? value.length > 0 : Boolean(value))

function valueAt({ values }: Scope, path: string): unknown {
  const value = path.split('.').reduce<unknown>((at, key) => (at as ChartValues | undefined)?.[key], values)
  if (value === undefined) throw new Error(`values.yaml has no ${path}`)
  return value
}
