/**
 * Commands of the documentation: those in code blocks, and those in `code` inside text and tables. The only place that
 * finds them; which of them are run, and how, is said elsewhere.
 */
export interface DocCommand {
  readonly page: string
  /** From 1. */
  readonly line: number
  /** On one line, without prompt and comment. */
  readonly text: string
  readonly place: 'block' | 'text'
  /** Why the page says that it is not run: `<!-- not run: needs a GPU -->`. */
  readonly mark?: string
}

/** Programs that a command begins with: what makes `code` in text a command. */
const PROGRAM =
  /^(?:npx spillway|npx vitest|npx tsc|node bench\/|npm (?:start|test|run |install|ci\b)|curl .*localhost:|locust |docker )/
/** The same for a block without a language, where the program by its bare name is no mention but a mistake. */
const PROGRAM_IN_BLOCK = new RegExp(`${PROGRAM.source}|^spillway [a-z-]`)
const VARIABLES = /^(?:[A-Z][A-Z0-9_]*=\S* )+/
const FENCE = /^(\s*(?:>\s*)?)```(\w*)/
const MARK = /<!-- not run: (.+?) -->/
/** Every line of a block in these languages is a command; in a block without a language, those that begin with a program. */
const SHELLS = ['sh', 'bash', 'console']

export function commandsOf(page: string, markdown: string): DocCommand[] {
  const found: DocCommand[] = []
  const lines = markdown.split('\n')
  let mark: string | undefined
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!
    const fence = FENCE.exec(line)
    if (fence !== null) {
      const end = lines.findIndex((each, index) => index > at && FENCE.test(each))
      const block = lines.slice(at + 1, end === -1 ? undefined : end)
      const isShell = SHELLS.includes(fence[2]!)
      if (isShell || fence[2] === '') {
        const all = blockCommands(page, block, at + 2, mark)
        found.push(...all.filter(({ text }) => isShell || begins(PROGRAM_IN_BLOCK, text)))
      }
      at += block.length + 1
      mark = undefined
      continue
    }
    found.push(...textCommands(page, line, at + 1))
    // A mark stands directly above the block, or with an empty line between.
    if (line.trim() !== '') mark = /^\s*<!--/.test(line) ? MARK.exec(line)?.[1] : undefined
  }
  return found
}

/** The lines of a block, put together where a `\` or an open quote goes on. */
function blockCommands(page: string, block: readonly string[], first: number, above: string | undefined): DocCommand[] {
  const found: DocCommand[] = []
  let open = ''
  let from = 0
  for (const [index, line] of block.entries()) {
    if (open === '') from = index
    const bare = line.replace(/^\s*(?:>\s*)?(?:\$ )?/, '')
    open = open === '' ? bare : `${open}\n${line}`
    if ((open.endsWith('\\') || hasOpenQuote(withoutComment(open))) && index < block.length - 1) continue
    const text = withoutComment(open).trim()
    open = ''
    if (text === '') continue
    found.push({ page, line: first + from, text, place: 'block', ...(above !== undefined && { mark: above }) })
  }
  return found
}

function textCommands(page: string, line: string, number: number): DocCommand[] {
  return [...line.matchAll(/`([^`]+)`((?: <!-- not run: .+? -->)?)/g)].flatMap(([, code, after]) => {
    const text = code!.trim()
    if (!begins(PROGRAM, text)) return []
    const mark = MARK.exec(after!)?.[1]
    return [{ page, line: number, text, place: 'text' as const, ...(mark !== undefined && { mark }) }]
  })
}

const begins = (program: RegExp, text: string): boolean => program.test(text.replace(VARIABLES, ''))

/** What a shell would read: a `#` after a space, outside quotes, begins a comment. */
function withoutComment(line: string): string {
  let quote = ''
  for (let at = 0; at < line.length; at += 1) {
    const char = line[at]!
    if (quote !== '') quote = char === quote ? '' : quote
    else if (char === "'" || char === '"') quote = char
    else if (char === '#' && (at === 0 || line[at - 1] === ' ')) return line.slice(0, at)
  }
  return line
}

function hasOpenQuote(text: string): boolean {
  let quote = ''
  for (const char of text) {
    if (quote !== '') quote = char === quote ? '' : quote
    else if (char === "'" || char === '"') quote = char
  }
  return quote !== ''
}
