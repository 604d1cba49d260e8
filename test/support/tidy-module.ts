import { dirname, join, normalize } from 'node:path'
import { type FunctionSpan, functionsOf } from './tidy-functions.ts'
import { type GlobalUse, globalsOf } from './tidy-globals.ts'
import { type Export, exportsOf, type Import, importsOf, type ReExport, reExportsOf } from './tidy-imports.ts'
import { parseSyntax, type Syntax } from './tidy-syntax.ts'

/** An import of one of our own files. */
export interface Edge {
  readonly target: string
  readonly line: number
  readonly isType: boolean
}

/** One file as the rules see it. The file is parsed once, and each list is made once. */
export class Module {
  readonly path: string
  readonly syntax: Syntax
  #edges: Edge[] | undefined
  #imports: Import[] | undefined
  #exports: Export[] | undefined
  #reExports: ReExport[] | undefined
  #globals: GlobalUse[] | undefined
  #functions: FunctionSpan[] | undefined

  constructor(path: string, text: string) {
    this.path = path
    this.syntax = parseSyntax(path, text)
  }

  get imports(): readonly Import[] {
    this.#imports ??= importsOf(this.syntax)
    return this.#imports
  }

  get edges(): readonly Edge[] {
    this.#edges ??= this.imports.flatMap(({ specifier, line, isType }) =>
      specifier?.startsWith('.') && !specifier.endsWith('.json')
        ? [{ target: normalize(join(dirname(this.path), specifier)), line, isType }]
        : [],
    )
    return this.#edges
  }

  get exports(): readonly Export[] {
    this.#exports ??= exportsOf(this.syntax)
    return this.#exports
  }

  get reExports(): readonly ReExport[] {
    this.#reExports ??= reExportsOf(this.syntax)
    return this.#reExports
  }

  get globals(): readonly GlobalUse[] {
    this.#globals ??= globalsOf(this.syntax)
    return this.#globals
  }

  get functions(): readonly FunctionSpan[] {
    this.#functions ??= functionsOf(this.syntax)
    return this.#functions
  }
}
