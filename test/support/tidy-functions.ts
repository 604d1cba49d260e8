import type { Node } from 'oxc-parser'
import { keyOf, type Syntax, walk } from './tidy-syntax.ts'

export interface FunctionSpan {
  readonly name: string
  readonly line: number
  /** Lines of the whole function, from its head to its closing brace. */
  readonly lines: number
}

/** Functions of every form: declarations, arrows, methods, accessors, and static blocks of classes. */
export function functionsOf({ program, lineOf }: Syntax): FunctionSpan[] {
  const found: FunctionSpan[] = []
  walk(program, (node, around) => {
    if (!isFunction(node)) return undefined
    const line = lineOf(node.start)
    found.push({ name: nameOf(node, around.at(-1)), line, lines: lineOf(node.end) - line + 1 })
    return undefined
  })
  return found
}

function isFunction(node: Node): boolean {
  return (
    node.type === 'FunctionDeclaration' ||
    node.type === 'FunctionExpression' ||
    node.type === 'ArrowFunctionExpression' ||
    node.type === 'StaticBlock'
  )
}

function nameOf(node: Node, parent: Node | undefined): string {
  if ('id' in node && node.id !== null && 'name' in node.id) return node.id.name
  const key = parent === undefined ? undefined : keyOf(parent)
  if (key !== undefined) return key
  if (parent?.type === 'VariableDeclarator' && parent.id.type === 'Identifier') return parent.id.name
  return `(${node.type})`
}
