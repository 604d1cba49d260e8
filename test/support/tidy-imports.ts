import type { ExportNamedDeclaration, Node, Program } from 'oxc-parser'
import { bare, boundNames, constantOf, type Syntax, walk } from './tidy-syntax.ts'

/** Imports, exports and re-exports of one file. */

export interface Import {
  /** Undefined when the specifier is computed while the program runs. */
  readonly specifier: string | undefined
  readonly line: number
  /** Type imports vanish before the program runs: they load no code. */
  readonly isType: boolean
  /** Imported names as the other module exports them; `*` for all of them. */
  readonly names: readonly string[]
}

export interface Export {
  readonly name: string
  readonly line: number
}

export interface ReExport {
  readonly line: number
  readonly what: string
}

export function importsOf(syntax: Syntax): Import[] {
  const found: Import[] = []
  walk(syntax.program, (node) => {
    const taken = importAt(node)
    if (taken !== undefined) found.push({ ...taken, line: syntax.lineOf(node.start) })
    return undefined
  })
  return found
}

function importAt(node: Node): Omit<Import, 'line'> | undefined {
  switch (node.type) {
    case 'ImportDeclaration':
      return {
        specifier: node.source.value,
        // `import { type A }` is stripped to `import {}`, which still runs the module.
        isType: node.importKind === 'type',
        names: node.specifiers.map((specifier) =>
          specifier.type === 'ImportSpecifier' ? nameOf(specifier.imported) : specifier.type,
        ),
      }
    case 'ExportAllDeclaration':
      return { specifier: node.source.value, isType: node.exportKind === 'type', names: ['*'] }
    case 'ExportNamedDeclaration':
      if (node.source === null) return undefined
      return {
        specifier: node.source.value,
        isType: node.exportKind === 'type',
        names: node.specifiers.map((specifier) => nameOf(specifier.local)),
      }
    case 'ImportExpression':
      return { specifier: constantOf(node.source), isType: false, names: ['*'] }
    case 'TSImportType':
      return { specifier: node.source.value, isType: true, names: ['*'] }
    case 'TSExternalModuleReference':
      return { specifier: node.expression.value, isType: false, names: ['*'] }
    case 'NewExpression':
      return fileBesideAt(node)
    default:
      return undefined
  }
}

/** `new URL('./thread.ts', import.meta.url)` names the module that a worker thread will run. */
function fileBesideAt(node: Extract<Node, { type: 'NewExpression' }>): Omit<Import, 'line'> | undefined {
  const [path, from] = node.arguments
  if (node.callee.type !== 'Identifier' || node.callee.name !== 'URL' || path === undefined) return undefined
  if (from?.type !== 'MemberExpression' || from.object.type !== 'MetaProperty') return undefined
  return { specifier: constantOf(path), isType: false, names: ['*'] }
}

/** Names of imports and exports may be identifiers or strings. */
function nameOf(node: Node): string {
  return node.type === 'Identifier' ? node.name : (constantOf(node) ?? '')
}

export function exportsOf({ program, lineOf }: Syntax): Export[] {
  const found: Export[] = []
  for (const node of program.body) {
    if (node.type !== 'ExportNamedDeclaration') continue
    for (const name of exportedNames(node)) found.push({ name, line: lineOf(node.start) })
  }
  return found
}

function exportedNames({ declaration, specifiers }: ExportNamedDeclaration): string[] {
  if (declaration === null) return specifiers.map((specifier) => nameOf(specifier.exported))
  if (declaration.type === 'VariableDeclaration') return declaration.declarations.flatMap(({ id }) => boundNames(id))
  return declaration.id === null ? [] : boundNames(declaration.id)
}

/**
 * Re-exports give a thing of another file a second address: `export … from`, an import that is exported again, and
 * both behind a new name (`export const b = a`, `export type B = A`).
 */
export function reExportsOf({ program, lineOf }: Syntax): ReExport[] {
  const foreign = importedNames(program)
  const isForeign = (node: Node): boolean => {
    const inner = bare(node)
    if (inner.type === 'Identifier') return foreign.has(inner.name)
    if (inner.type === 'TSTypeReference') return inner.typeArguments === null && isForeign(inner.typeName)
    if (inner.type === 'TSQualifiedName') return isForeign(inner.left)
    if (inner.type === 'TSTypeQuery') return isForeign(inner.exprName)
    return (
      inner.type === 'MemberExpression' && inner.object.type === 'Identifier' && foreign.get(inner.object.name) === '*'
    )
  }
  // After `const b = a` the name `b` is as foreign as `a`.
  for (const node of program.body) for (const name of aliasesIn(node, isForeign)) foreign.set(name, 'alias')
  const found: ReExport[] = []
  for (const node of program.body) {
    const line = lineOf(node.start)
    if (node.type === 'ExportAllDeclaration') found.push({ line, what: node.source.value })
    else if (node.type === 'ExportDefaultDeclaration' && isForeign(node.declaration))
      found.push({ line, what: 'default' })
    else if (node.type === 'TSExportAssignment' && isForeign(node.expression)) found.push({ line, what: 'export =' })
    else if (node.type === 'ExportNamedDeclaration') {
      if (node.source !== null) found.push({ line, what: node.source.value })
      const names = node.source === null ? node.specifiers.filter(({ local }) => foreign.has(nameOf(local))) : []
      for (const { exported } of names) found.push({ line, what: nameOf(exported) })
      for (const name of aliasesIn(node, isForeign)) found.push({ line, what: name })
    }
  }
  return found
}

/** Imported names as this file knows them; `*` marks the name of a whole module. */
function importedNames(program: Program): Map<string, '*' | 'name' | 'alias'> {
  const found = new Map<string, '*' | 'name' | 'alias'>()
  for (const node of program.body) {
    if (node.type === 'TSImportEqualsDeclaration') found.set(node.id.name, '*')
    if (node.type !== 'ImportDeclaration') continue
    for (const { type, local } of node.specifiers)
      found.set(local.name, type === 'ImportNamespaceSpecifier' ? '*' : 'name')
  }
  return found
}

/** Names that a statement gives to something imported, without adding anything. */
function aliasesIn(node: Node, isForeign: (node: Node) => boolean): string[] {
  const inner = node.type === 'ExportNamedDeclaration' ? node.declaration : node
  if (inner === null) return []
  if (inner.type === 'TSTypeAliasDeclaration') return isForeign(inner.typeAnnotation) ? [inner.id.name] : []
  if (inner.type === 'TSImportEqualsDeclaration') return [inner.id.name]
  if (inner.type !== 'VariableDeclaration') return []
  return inner.declarations.filter(({ init }) => init !== null && isForeign(init)).flatMap(({ id }) => boundNames(id))
}
