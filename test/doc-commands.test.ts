import { globSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { commandsOf } from './docs-check/doc-commands.ts'

/** Commands in code blocks run in a clone as they stand: there the program is found by `npx`, and not by its bare name. */
const ROOT = new URL('../', import.meta.url)

/** The bare name where a shell looks for a program: at a line's start, after a prompt, variables, `do` or an operator. */
const BARE_NAME = /(?:^|[;&|(] ?|\bdo )\s*(?:\$ )?(?:[A-Z][A-Z0-9_]*=\S* )*spillway (?=[a-z-])/

/** The numbers of the lines, from 1, at which a command in a code block is not found in a clone. */
function bareCommandLines(page: string): number[] {
  return commandsOf('', page)
    .filter(({ place, text }) => place === 'block' && BARE_NAME.test(text))
    .map(({ line }) => line)
}

describe('commands in the documentation', () => {
  it('are found in a clone', () => {
    const pages = globSync(['*.md', '{docs,examples,bench,scenarios,src,test}/**/*.md'], { cwd: ROOT })
    expect(pages.length).toBeGreaterThan(20)
    const bare = pages.flatMap((page) =>
      bareCommandLines(readFileSync(new URL(page, ROOT), 'utf8')).map((line) => `${page}:${line}`),
    )
    expect(bare).toEqual([])
  })

  it.each([
    'spillway serve',
    '$ spillway reload --because "x"',
    'PORT=9000 spillway serve',
    'for load in 1 4; do spillway simulate burst; done',
    'npm ci && spillway --help',
  ])('are found wrong when they are: %s', (line) => {
    expect(bareCommandLines(`\`\`\`sh\nnpm ci\n${line}\n\`\`\``)).toEqual([3])
    expect(bareCommandLines(`\`\`\`sh\n${line.replace('spillway', 'npx spillway')}\n\`\`\`\n${line}`)).toEqual([])
  })
})
