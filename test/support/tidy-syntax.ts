import { type Node, type Program, parseSync, visitorKeys } from 'oxc-parser'

/** The syntax tree of one file, as oxc-parser gives it. */
export interface Syntax {
  readonly program: Program
  /** Reasons why the file cannot be parsed; the tree is then empty. */
  readonly errors: readonly string[]
  /** The line, from 1, of an offset in the text. */
  readonly lineOf: (offset: number) => number
}

export function parseSyntax(path: string, text: string): Syntax {
  const { program, errors } = parseSync(path, text, { sourceType: 'module', preserveParens: false })
  const starts = [0]
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  const lineOf = (offset: number): number => {
    let low = 0
    let high = starts.length
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if ((starts[middle] ?? 0) <= offset) low = middle
      else high = middle
    }
    return low + 1
  }
  return { program, errors: errors.map(({ message }) => message), lineOf }
}

/** The nodes directly inside a node, in the order of the text. */
export function childrenOf(node: Node): Node[] {
  const found: Node[] = []
  for (const key of visitorKeys[node.type] ?? []) {
    const child: unknown = node[key as keyof Node]
    if (Array.isArray(child)) found.push(...child.filter((item) => item !== null))
    else if (child !== null && child !== undefined) found.push(child as Node)
  }
  return found
}

/** Visits every node, outer before inner, with the nodes around it, nearest last. `false` skips what is inside. */
export function walk(
  node: Node,
  visit: (node: Node, around: readonly Node[]) => boolean | undefined,
  around: Node[] = [],
): void {
  if (visit(node, around) === false) return
  around.push(node)
  for (const child of childrenOf(node)) walk(child, visit, around)
  around.pop()
}

/** The expression inside type assertions, `!` and `?.`, which change no value. */
export function bare(node: Node): Node {
  switch (node.type) {
    case 'TSAsExpression':
    case 'TSSatisfiesExpression':
    case 'TSTypeAssertion':
    case 'TSNonNullExpression':
    case 'TSInstantiationExpression':
    case 'ChainExpression':
    case 'ParenthesizedExpression':
      return bare(node.expression)
    default:
      return node
  }
}

/** The string that a literal or a template without expressions stands for. */
export function constantOf(node: Node): string | undefined {
  const inner = bare(node)
  if (inner.type === 'Literal' && typeof inner.value === 'string') return inner.value
  if (inner.type === 'TemplateLiteral' && inner.expressions.length === 0) return inner.quasis[0]?.value.cooked ?? ''
  return undefined
}

/** The property of a member expression: `b` of `a.b`, `a['b']` and `a.#b`; undefined when the name is computed. */
export function propertyOf(node: Node): string | undefined {
  if (node.type !== 'MemberExpression') return undefined
  if (node.computed) return constantOf(node.property)
  return 'name' in node.property ? node.property.name : undefined
}

/** The name that a method, a property or a field has in its class or object, when the text says it. */
export function keyOf(node: Node): string | undefined {
  if (!('key' in node)) return undefined
  const key: Node = node.key
  return key.type === 'Identifier' || key.type === 'PrivateIdentifier' ? key.name : constantOf(key)
}

/** The names that a pattern binds: `a`, `b` and `c` of `{ a, x: [b, ...c] }`. */
export function boundNames(pattern: Node): string[] {
  switch (pattern.type) {
    case 'Identifier':
      return [pattern.name]
    case 'ObjectPattern':
      return pattern.properties.flatMap((property) =>
        boundNames(property.type === 'RestElement' ? property.argument : property.value),
      )
    case 'ArrayPattern':
      return pattern.elements.flatMap((element) => (element === null ? [] : boundNames(element)))
    case 'AssignmentPattern':
      return boundNames(pattern.left)
    case 'RestElement':
      return boundNames(pattern.argument)
    case 'TSParameterProperty':
      return boundNames(pattern.parameter)
    default:
      return []
  }
}
