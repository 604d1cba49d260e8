import type { Node } from 'oxc-parser'
import { bare, boundNames, childrenOf, propertyOf, type Syntax } from './tidy-syntax.ts'

/**
 * Which globals does a file use? A global is a name that no import, declaration or parameter around it binds: the
 * runtime's clock, timers, process and so on. `declare` binds nothing, because only the type checker reads it.
 */
export interface GlobalUse {
  /** `['Date', 'now']` for `Date.now` and `Date['now']`; `?` for a computed property, `''` for an arbitrary object. */
  readonly chain: readonly string[]
  readonly how: 'read' | 'called' | 'called with none' | 'made' | 'made with none' | 'only named'
  readonly line: number
}

/** The names that one scope binds. `var` declarations rise to the nearest function's scope. */
interface Scope {
  readonly names: Set<string>
  readonly outer: Scope | undefined
  readonly isFunction: boolean
}

export function globalsOf(syntax: Syntax): GlobalUse[] {
  const scopes = new Map<Node, Scope>()
  declareAll(syntax.program, undefined, scopes)
  const found: GlobalUse[] = []
  const visit = (node: Node, scope: Scope | undefined, around: Node[]): void => {
    const here = scopes.get(node) ?? scope
    const use = useAt(node, around, here)
    if (use !== undefined) found.push({ ...use, line: syntax.lineOf(node.start) })
    around.push(node)
    for (const child of valuesIn(node)) visit(child, here, around)
    around.pop()
  }
  visit(syntax.program, undefined, [])
  return found
}

function isDeclared(name: string, scope: Scope | undefined): boolean {
  for (let at = scope; at !== undefined; at = at.outer) if (at.names.has(name)) return true
  return false
}

// ── Scopes ─────────────────────────────────────────────────────────────────────────────────────────────────────────

function declareAll(node: Node, outer: Scope | undefined, scopes: Map<Node, Scope>): void {
  let scope = outer
  if (opensScope(node)) {
    scope = { names: new Set(ownNames(node)), outer, isFunction: isFunctionScope(node) }
    scopes.set(node, scope)
  }
  for (const child of valuesIn(node)) {
    for (const [name, isVar] of declaredBy(child)) {
      let target = scope
      while (isVar && target !== undefined && !target.isFunction) target = target.outer
      target?.names.add(name)
    }
    declareAll(child, scope, scopes)
  }
}

const isFunctionScope = ({ type }: Node) =>
  type === 'Program' ||
  type === 'FunctionDeclaration' ||
  type === 'FunctionExpression' ||
  type === 'ArrowFunctionExpression' ||
  type === 'StaticBlock'

const opensScope = (node: Node) =>
  isFunctionScope(node) ||
  node.type === 'BlockStatement' ||
  node.type === 'ForStatement' ||
  node.type === 'ForInStatement' ||
  node.type === 'ForOfStatement' ||
  node.type === 'SwitchStatement' ||
  node.type === 'CatchClause' ||
  node.type === 'ClassDeclaration' ||
  node.type === 'ClassExpression'

/** Names that the head of a scope binds: parameters, and the own name of a function or class expression. */
function ownNames(node: Node): string[] {
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'FunctionExpression':
      // Functions other than arrows bind `arguments`.
      return [...(node.id === null ? [] : [node.id.name]), ...node.params.flatMap(boundNames), 'arguments']
    case 'ArrowFunctionExpression':
      return node.params.flatMap(boundNames)
    case 'CatchClause':
      return node.param === null ? [] : boundNames(node.param)
    case 'ClassDeclaration':
    case 'ClassExpression':
      return node.id === null ? [] : [node.id.name]
    default:
      return []
  }
}

/** Names that a statement binds in the scope around it, or, where the flag says `var`, in the function around it. */
function declaredBy(node: Node): (readonly [name: string, isVar: boolean])[] {
  if ('declare' in node && node.declare) return []
  switch (node.type) {
    case 'VariableDeclaration':
      return node.declarations.flatMap(({ id }) => boundNames(id)).map((name) => [name, node.kind === 'var'] as const)
    case 'FunctionDeclaration':
    case 'ClassDeclaration':
    case 'TSEnumDeclaration':
      return node.id === null ? [] : [[node.id.name, false]]
    case 'ImportDeclaration':
      return node.specifiers.map(({ local }) => [local.name, false] as const)
    case 'TSImportEqualsDeclaration':
      return [[node.id.name, false]]
    case 'ExportNamedDeclaration':
      return node.declaration === null ? [] : declaredBy(node.declaration)
    case 'ExportDefaultDeclaration':
      return declaredBy(node.declaration)
    default:
      return []
  }
}

// ── Values ─────────────────────────────────────────────────────────────────────────────────────────────────────────

const ASSERTIONS = new Set([
  'TSAsExpression',
  'TSSatisfiesExpression',
  'TSTypeAssertion',
  'TSNonNullExpression',
  'TSInstantiationExpression',
  'TSParameterProperty',
  'TSExportAssignment',
])

/** Children that exist when the program runs: no types, and no names that are mere labels (`b` of `a.b`). */
function valuesIn(node: Node): Node[] {
  if ('declare' in node && node.declare) return []
  const labels = labelsIn(node)
  return childrenOf(node).filter(
    (child) => !labels.includes(child) && (!child.type.startsWith('TS') || ASSERTIONS.has(child.type)),
  )
}

function labelsIn(node: Node): readonly (Node | null)[] {
  switch (node.type) {
    case 'MemberExpression':
      return node.computed ? [] : [node.property]
    case 'Property':
    case 'MethodDefinition':
    case 'PropertyDefinition':
    case 'AccessorProperty':
      return node.computed ? [] : [node.key]
    case 'ImportDeclaration':
    case 'ExportAllDeclaration':
    case 'MetaProperty':
      return childrenOf(node)
    case 'ExportNamedDeclaration':
      return node.source === null ? [] : childrenOf(node)
    case 'ExportSpecifier':
      return [node.exported]
    case 'LabeledStatement':
    case 'BreakStatement':
    case 'ContinueStatement':
      return [node.label]
    default:
      return []
  }
}

// ── Uses ───────────────────────────────────────────────────────────────────────────────────────────────────────────

type Use = Omit<GlobalUse, 'line'>

function useAt(node: Node, around: readonly Node[], scope: Scope | undefined): Use | undefined {
  if (node.type === 'Identifier') return isDeclared(node.name, scope) ? undefined : useOf(node.name, node, around)
  if (node.type === 'MetaProperty' && node.meta.name === 'import') return useOf('import.meta', node, around)
  if (isAsynchronous(node)) return { chain: ['async'], how: 'read' }
  if (node.type !== 'MemberExpression') return undefined
  // Some entries of the table are properties of arbitrary objects (`.constructor`).
  const property = propertyOf(node)
  const parent = around.at(-1)
  return property === undefined || parent === undefined
    ? undefined
    : { chain: ['', property], how: howUsed(node, parent) }
}

const isAsynchronous = (node: Node) =>
  node.type === 'AwaitExpression' ||
  ('async' in node && node.async) ||
  (node.type === 'ForOfStatement' && node.await) ||
  (node.type === 'VariableDeclaration' && node.kind === 'await using')

/** Follows `a.b.c` outwards from `a`, and tells what the file does with the last property. */
function useOf(name: string, start: Node, around: readonly Node[]): Use {
  const chain = [name]
  let node = start
  for (let i = around.length - 1; i >= 0; i--) {
    const parent = around[i]
    if (parent === undefined) break
    if (parent.type === 'MemberExpression' && bare(parent.object) === bare(node)) chain.push(propertyOf(parent) ?? '?')
    else if (bare(parent) !== bare(node)) return { chain, how: howUsed(bare(node), parent) }
    node = parent
  }
  return { chain, how: 'read' }
}

function howUsed(node: Node, parent: Node): GlobalUse['how'] {
  if (parent.type === 'CallExpression' && bare(parent.callee) === node) {
    return isGiven(parent.arguments) ? 'called' : 'called with none'
  }
  if (parent.type === 'NewExpression' && bare(parent.callee) === node) {
    return isGiven(parent.arguments) ? 'made' : 'made with none'
  }
  const isCompared =
    parent.type === 'BinaryExpression' && parent.operator === 'instanceof' && bare(parent.right) === node
  const isMeasured = parent.type === 'UnaryExpression' && parent.operator === 'typeof'
  return isCompared || isMeasured ? 'only named' : 'read'
}

/** A spread alone counts as no argument, because the array may be empty. */
const isGiven = (values: readonly Node[]) => values.some(({ type }) => type !== 'SpreadElement')
