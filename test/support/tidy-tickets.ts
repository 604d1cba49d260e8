import type { Node } from 'oxc-parser'
import { bare, boundNames, keyOf, propertyOf, type Syntax, walk } from './tidy-syntax.ts'

/**
 * Lines of a file that write to a ticket. A ticket is a thing with such a name (`ticket`, `#oldTicket`, `offer.ticket`)
 * or with a type from `lifecycle/ticket.ts`. Writes are assignments, `++` and `delete` at any depth below the ticket,
 * calls of the ticket's own methods, and calls that hand the ticket to `Object` or `Reflect`.
 */
export function ticketWritesOf(syntax: Syntax): number[] {
  const types = new Set(
    syntax.program.body.flatMap((node) =>
      node.type === 'ImportDeclaration' && node.source.value.endsWith('/ticket.ts')
        ? node.specifiers.map(({ local }) => local.name)
        : [],
    ),
  )
  const called = namesTyped(syntax.program, types)
  const isTicket = (node: Node): boolean => {
    const inner = bare(node)
    const name = inner.type === 'Identifier' ? inner.name : propertyOf(inner)
    return name !== undefined && (/^ticket$|Ticket$/.test(name) || called.has(name))
  }
  const isBelow = (node: Node): boolean => {
    const inner = bare(node)
    return inner.type === 'MemberExpression' && (isTicket(inner.object) || isBelow(inner.object))
  }
  const found: number[] = []
  walk(syntax.program, (node) => {
    if (writtenBy(node).some(isBelow) || isMutation(node, isTicket)) found.push(syntax.lineOf(node.start))
    return undefined
  })
  return found
}

/** Expressions that a node assigns to, counts or deletes. */
function writtenBy(node: Node): Node[] {
  switch (node.type) {
    case 'AssignmentExpression':
      return targetsOf(node.left)
    case 'UpdateExpression':
      return [node.argument]
    case 'UnaryExpression':
      return node.operator === 'delete' ? [node.argument] : []
    case 'ForOfStatement':
    case 'ForInStatement':
      return targetsOf(node.left)
    default:
      return []
  }
}

/** Targets of an assignment: `a.b` and `c.d` of `[a.b, { x: c.d }] = …`. */
function targetsOf(pattern: Node): Node[] {
  switch (pattern.type) {
    case 'ArrayPattern':
      return pattern.elements.flatMap((element) => (element === null ? [] : targetsOf(element)))
    case 'ObjectPattern':
      return pattern.properties.flatMap((property) =>
        targetsOf(property.type === 'RestElement' ? property.argument : property.value),
      )
    case 'AssignmentPattern':
      return targetsOf(pattern.left)
    case 'RestElement':
      return targetsOf(pattern.argument)
    default:
      return [pattern]
  }
}

function isMutation(node: Node, isTicket: (node: Node) => boolean): boolean {
  if (node.type !== 'CallExpression') return false
  const callee = bare(node.callee)
  if (callee.type !== 'MemberExpression') return false
  if (isTicket(callee.object)) return true
  const owner = bare(callee.object)
  const [first] = node.arguments
  const isOfLanguage = owner.type === 'Identifier' && (owner.name === 'Object' || owner.name === 'Reflect')
  return isOfLanguage && first !== undefined && isTicket(first)
}

/** Parameters, variables and fields that are declared with one of these types. */
function namesTyped(program: Node, types: ReadonlySet<string>): Set<string> {
  const names = new Set<string>()
  walk(program, (node) => {
    if (!('typeAnnotation' in node) || node.typeAnnotation?.type !== 'TSTypeAnnotation') return undefined
    if (!mentions(node.typeAnnotation, types)) return undefined
    if (node.type === 'Identifier') for (const name of boundNames(node)) names.add(name)
    const key = keyOf(node)
    if (key !== undefined) names.add(key)
    return undefined
  })
  return names
}

/** Whether a type is one of the names, or a union with one: a list of tickets is not itself a ticket. */
function mentions(type: Node, names: ReadonlySet<string>): boolean {
  if (type.type === 'TSTypeAnnotation') return mentions(type.typeAnnotation, names)
  if (type.type === 'TSUnionType' || type.type === 'TSIntersectionType')
    return type.types.some((one) => mentions(one, names))
  return type.type === 'TSTypeReference' && type.typeName.type === 'Identifier' && names.has(type.typeName.name)
}
