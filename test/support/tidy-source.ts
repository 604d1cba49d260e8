/**
 * A small reader of TypeScript for the tidy test: enough to tell code from comments and strings, to find imports, and
 * to measure functions. It is no parser: it reads the code that our formatter writes.
 */

export interface Source {
  /** Comments blanked, everything else as it was: lines and columns stay. */
  readonly withoutComments: string
  /** Comments, strings and regular expressions blanked too. */
  readonly codeOnly: string
}

/** A slash here begins a regular expression, not a division. */
const BEFORE_REGEX = /(^|[=(,:[!&|?{};+\n]|=>|\breturn|\bcase|\btypeof)\s*$/

export function readSource(text: string): Source {
  let withoutComments = ''
  let codeOnly = ''
  const blank = (piece: string) => piece.replace(/[^\n]/g, ' ')
  /** Depth of braces at which each open `${` of a template ends. */
  const templates: number[] = []
  let braces = 0
  for (let i = 0; i < text.length; ) {
    const rest = text.slice(i, i + 2)
    const isTemplateEnd = text[i] === '}' && templates.at(-1) === braces
    let end = i + 1
    if (rest === '//') end = endOr(text.indexOf('\n', i), text)
    else if (rest === '/*') end = endOr(text.indexOf('*/', i + 2) + 2, text)
    if (rest === '//' || rest === '/*') {
      withoutComments += blank(text.slice(i, end))
      codeOnly += blank(text.slice(i, end))
      i = end
      continue
    }
    if (text[i] === "'" || text[i] === '"') end = endOfQuoted(text, i)
    else if (text[i] === '`' || isTemplateEnd) {
      if (isTemplateEnd) templates.pop()
      end = endOfTemplatePart(text, i)
      if (text.endsWith('${', end)) templates.push(braces)
    } else if (text[i] === '/' && BEFORE_REGEX.test(codeOnly.slice(-20))) end = endOfRegex(text, i)
    else if (text[i] === '{') braces++
    else if (text[i] === '}') braces--
    withoutComments += text.slice(i, end)
    codeOnly += end === i + 1 ? text[i] : blank(text.slice(i, end))
    i = end
  }
  return { withoutComments, codeOnly }
}

const endOr = (index: number, text: string) => (index <= 1 ? text.length : index)

function endOfQuoted(text: string, start: number): number {
  let i = start + 1
  while (i < text.length && text[i] !== text[start] && text[i] !== '\n') i += text[i] === '\\' ? 2 : 1
  return i + 1
}

/** From a backtick or a closing brace to the closing backtick or to just behind the next `${`. */
function endOfTemplatePart(text: string, start: number): number {
  for (let i = start + 1; i < text.length; i += text[i] === '\\' ? 2 : 1) {
    if (text[i] === '`') return i + 1
    if (text[i] === '$' && text[i + 1] === '{') return i + 2
  }
  return text.length
}

function endOfRegex(text: string, start: number): number {
  let isInClass = false
  for (let i = start + 1; i < text.length && text[i] !== '\n'; i += text[i] === '\\' ? 2 : 1) {
    if (text[i] === '[') isInClass = true
    else if (text[i] === ']') isInClass = false
    else if (text[i] === '/' && !isInClass) return i + 1
  }
  return start + 1
}

export interface Import {
  readonly specifier: string
  readonly line: number
  /** Gone when the types are: it cannot pull code in. */
  readonly isType: boolean
  readonly isReExport: boolean
}

const IMPORT =
  /^(import|export)\s+(type\s+)?(?:[\w*{][^;'"]*?\sfrom\s*)?['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/gm

export function importsOf(text: string): Import[] {
  const source = readSource(text).withoutComments
  return [...source.matchAll(IMPORT)].map((match) => ({
    specifier: match[3] ?? match[4] ?? '',
    line: lineAt(source, match.index),
    isType: match[2] !== undefined,
    isReExport: match[1] === 'export',
  }))
}

export interface FunctionSpan {
  readonly name: string
  readonly line: number
  readonly lines: number
}

/** What stands before a body's brace: a parameter list (with a return type perhaps), or an arrow. */
const OPENS_BODY = /(\)(\s*:\s*[^(){};=]+)?|=>)\s*$/
const CONTROL = /\b(if|for|while|switch|catch|with)\s*$/

export function functionsOf(text: string): FunctionSpan[] {
  const code = readSource(text).codeOnly
  const spans: FunctionSpan[] = []
  const open: { start: number; name: string | undefined }[] = []
  for (let i = 0; i < code.length; i++) {
    if (code[i] === '{') open.push({ start: i, name: functionNameAt(code, i) })
    else if (code[i] === '}') {
      const { start, name } = open.pop() ?? { start: 0, name: undefined }
      if (name === undefined) continue
      const line = lineAt(code, start)
      spans.push({ name, line, lines: lineAt(code, i) - line + 1 })
    }
  }
  return spans
}

function functionNameAt(code: string, brace: number): string | undefined {
  const before = code.slice(Math.max(0, brace - 600), brace)
  if (!OPENS_BODY.test(before)) return undefined
  if (/=>\s*$/.test(before)) return /(\w+)\s*[:=][^=;]*=>\s*$/.exec(before)?.[1] ?? '(arrow)'
  const list = before.lastIndexOf(')')
  let depth = 0
  for (let i = list; i >= 0; i--) {
    if (before[i] === ')') depth++
    else if (before[i] === '(' && --depth === 0) {
      const head = before.slice(0, i)
      return CONTROL.test(head) ? undefined : (/([\w#$]+)(<[^()]*>)?\s*$/.exec(head)?.[1] ?? '(function)')
    }
  }
  return undefined
}

export function lineAt(text: string, index: number): number {
  let line = 1
  for (let at = text.indexOf('\n'); at !== -1 && at < index; at = text.indexOf('\n', at + 1)) line++
  return line
}
