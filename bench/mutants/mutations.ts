import type { Node } from 'oxc-parser'
import { keyOf, parseSyntax, propertyOf, walk } from '../../test/support/tidy-syntax.ts'

/**
 * All mutations of one file: each changes one place in the way of a mistake that people make. Types, imports and what is
 * thrown are left alone: they change nothing that a test of behaviour could see.
 */
export const OPERATORS = [
  'sign',
  'comparison',
  'condition',
  'off by one',
  'unit',
  'min/max',
  'await',
  'statement',
] as const
export type Operator = (typeof OPERATORS)[number]

export interface Mutation {
  readonly file: string
  readonly line: number
  readonly operator: Operator
  /** Offsets in the file's text. */
  readonly start: number
  readonly end: number
  readonly was: string
  readonly now: string
  /** The mutated line as the file has it, without indentation: it names the place when lines above it come and go. */
  readonly text: string
}

export function mutationsOf(file: string, text: string): Mutation[] {
  const syntax = parseSyntax(file, text)
  if (syntax.errors.length > 0) throw new Error(`${file}: ${syntax.errors[0]}`)
  const lines = text.split('\n')
  const found: Mutation[] = []
  walk(syntax.program, (node, around) => {
    if (isLeftAlone(node)) return false
    for (const { at, now, operator } of changesAt(node, around, text)) {
      const line = syntax.lineOf(at.start)
      const was = text.slice(at.start, at.end)
      found.push({ file, line, operator, start: at.start, end: at.end, was, now, text: lines[line - 1]!.trim() })
    }
    return undefined
  })
  return found
}

export function mutated(text: string, { start, end, now }: Mutation): string {
  return text.slice(0, start) + now + text.slice(end)
}

interface Span {
  readonly start: number
  readonly end: number
}

interface Change {
  readonly at: Span
  readonly now: string
  readonly operator: Operator
}

function isLeftAlone(node: Node): boolean {
  if (node.type === 'ImportDeclaration' || node.type === 'ThrowStatement') return true
  // A broken assertion is a programming error; what it says is no behaviour.
  if (node.type === 'CallExpression' && node.callee.type === 'Identifier')
    return node.callee.name === 'assert' || node.callee.name === 'unreachable'
  return node.type.startsWith('TS') && !VALUES.has(node.type)
}

/** Nodes of TypeScript that hold an expression which runs. */
const VALUES: ReadonlySet<string> = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression'])

function changesAt(node: Node, around: readonly Node[], text: string): Change[] {
  const source = ({ start, end }: Span): string => text.slice(start, end)
  switch (node.type) {
    case 'BinaryExpression':
      return binaryChanges(node, around.at(-1), text)
    case 'AssignmentExpression': {
      const turned = TURNED[node.operator]
      if (turned === undefined || isText(node.right)) return []
      return [{ at: signOf(node, text), now: turned, operator: 'sign' }]
    }
    case 'UpdateExpression': {
      // A loop that counts the wrong way never ends, which every test sees.
      if (around.at(-1)?.type === 'ForStatement') return []
      return [{ at: node, now: source(node).replace(node.operator, TURNED[node.operator]!), operator: 'sign' }]
    }
    case 'UnaryExpression': {
      if (node.operator !== '!' && node.operator !== '-') return []
      if (isTestOf(around.at(-1), node)) return []
      return [{ at: node, now: `(${source(node.argument)})`, operator: node.operator === '!' ? 'condition' : 'sign' }]
    }
    case 'LogicalExpression': {
      if (node.operator === '??') return []
      const turned = node.operator === '&&' ? '||' : '&&'
      return [{ at: signOf(node, text), now: turned, operator: 'condition' }]
    }
    case 'IfStatement':
      return [negated(node.test, source), ...(isGuard(node) ? [dropped(node)] : [])]
    case 'ConditionalExpression':
      return [negated(node.test, source)]
    case 'Literal':
      return literalChanges(node, around)
    case 'CallExpression':
      return callChanges(node, source)
    case 'AwaitExpression':
      // Without a semicolon a statement that begins with a parenthesis would call the line above it.
      return [
        {
          at: { start: node.start, end: node.start + 'await'.length },
          now: around.at(-1)?.type === 'ExpressionStatement' ? ';' : '',
          operator: 'await',
        },
      ]
    case 'ExpressionStatement':
      return node.expression.type === 'Literal' || isSuperCall(node.expression) ? [] : [dropped(node)]
    default:
      return []
  }
}

const TURNED: Readonly<Record<string, string>> = { '++': '--', '--': '++', '+=': '-=', '-=': '+=', '+': '-', '-': '+' }
const FLIPPED: Readonly<Record<string, string>> = { '<': '>', '<=': '>=', '>': '<', '>=': '<=' }
const INVERTED: Readonly<Record<string, string>> = { '===': '!==', '!==': '===' }
const SHIFTED: Readonly<Record<string, string>> = { '<': '<=', '<=': '<', '>': '>=', '>=': '>' }

function binaryChanges(
  node: Extract<Node, { type: 'BinaryExpression' }>,
  outer: Node | undefined,
  text: string,
): Change[] {
  const { left, right, operator } = node
  const at = signOf(node, text)
  const put = (now: string, kind: Operator): Change => ({ at, now, operator: kind })
  if (operator in INVERTED) return isTestOf(outer, node) ? [] : [put(INVERTED[operator]!, 'condition')]
  if (operator in FLIPPED) {
    const flipped = put(FLIPPED[operator]!, 'comparison')
    return isCounted(left) || isCounted(right) ? [flipped, put(SHIFTED[operator]!, 'off by one')] : [flipped]
  }
  if ((operator === '+' || operator === '-') && !isText(left) && !isText(right))
    return [put(TURNED[operator]!, 'sign'), ...[left, right].flatMap((side) => enlarged(side, text))]
  if (operator !== '*' && operator !== '/') return []
  // `ms * 1_000` without the factor is the other unit.
  return isFactor(right) ? [{ at: { start: at.start, end: right.end }, now: '', operator: 'unit' }] : []
}

/** A sum of times, sizes or money, one part of which is in a unit a thousand times smaller. */
function enlarged(side: Node, text: string): Change[] {
  const name = side.type === 'Identifier' ? side.name : propertyOf(side)
  if (name === undefined || !UNIT.test(name)) return []
  return [{ at: side, now: `(${text.slice(side.start, side.end)} * 1000)`, operator: 'unit' }]
}

const UNIT = /(?:Us|Ms|At|Bytes|Tokens|Nano|_US|_MS|_S|_BYTES|_TOKENS)(?:Max|Min|_MAX|_MIN)?$/
const FACTORS: ReadonlySet<number> = new Set([1e3, 1e6, 1e9])

function isFactor(node: Node): boolean {
  if (node.type === 'Literal') return typeof node.value === 'number' && FACTORS.has(node.value)
  return node.type === 'Identifier' && /^[A-Z]+_PER_[A-Z]+$/.test(node.name)
}

/**
 * One more or less is a fault where things are counted. An instant, a duration or a cost that is off by one unit is none
 * that anybody could see.
 */
function isCounted(node: Node): boolean {
  const name = node.type === 'Identifier' ? node.name : propertyOf(node)
  return name !== undefined && /^(?:[in]|length|size|count|index)$|(?:Count|Index)$/.test(name)
}

/** Whole numbers up to this are counts and places; larger ones are tuned, and one more changes nothing. */
const COUNTED_MAX = 10

function literalChanges(node: Extract<Node, { type: 'Literal' }>, around: readonly Node[]): Change[] {
  if (typeof node.value !== 'number') return []
  const outer = around.at(-1)
  if (outer !== undefined && UNIT.test(nameGiven(outer) ?? '') && node.value !== 0)
    return [{ at: node, now: `(${node.value} * 1000)`, operator: 'unit' }]
  if (!Number.isInteger(node.value) || node.value > COUNTED_MAX) return []
  return [{ at: node, now: String(node.value + 1), operator: 'off by one' }]
}

/** The name of the constant or field that is initialised here. */
function nameGiven(node: Node): string | undefined {
  if (node.type === 'VariableDeclarator') return node.id.type === 'Identifier' ? node.id.name : undefined
  return node.type === 'Property' || node.type === 'PropertyDefinition' ? keyOf(node) : undefined
}

function callChanges(node: Extract<Node, { type: 'CallExpression' }>, source: (at: Span) => string): Change[] {
  const { callee } = node
  if (callee.type === 'Identifier' && /^(?:msToUs|usToMs)$/.test(callee.name))
    return [{ at: callee, now: '', operator: 'unit' }]
  if (callee.type !== 'MemberExpression' || source(callee.object) !== 'Math') return []
  const name = propertyOf(callee)
  if (name !== 'min' && name !== 'max') return []
  return [{ at: callee.property, now: name === 'min' ? 'max' : 'min', operator: 'min/max' }]
}

/** An `if` that only leaves: without it the lines below run for every case. */
function isGuard({ alternate, consequent }: Extract<Node, { type: 'IfStatement' }>): boolean {
  if (alternate !== null) return false
  const inner = consequent.type === 'BlockStatement' ? consequent.body[0] : consequent
  return inner?.type === 'ReturnStatement' || inner?.type === 'ContinueStatement' || inner?.type === 'BreakStatement'
}

const dropped = (at: Span): Change => ({ at, now: ';', operator: 'statement' })

function negated(test: Node, source: (at: Span) => string): Change {
  return { at: test, now: `!(${source(test)})`, operator: 'condition' }
}

function isSuperCall(node: Node): boolean {
  return node.type === 'CallExpression' && node.callee.type === 'Super'
}

/** Strings have no sign. */
function isText(node: Node): boolean {
  if (node.type === 'TemplateLiteral') return true
  if (node.type === 'BinaryExpression') return isText(node.left) || isText(node.right)
  return node.type === 'Literal' && typeof node.value === 'string'
}

/** Where the operator stands between its sides, which may be in parentheses. */
function signOf(sides: { left: Span; right: Span; operator: string }, text: string): Span {
  const start = text.indexOf(sides.operator, sides.left.end)
  return { start, end: start + sides.operator.length }
}

/** The whole test of an `if` or `? :` is negated as such, and not once more here. */
function isTestOf(outer: Node | undefined, node: Node): boolean {
  return (outer?.type === 'IfStatement' || outer?.type === 'ConditionalExpression') && outer.test === node
}
