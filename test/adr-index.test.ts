import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

/** The index of decisions names every page, and every number is a page or is said to be taken. */
const FOLDER = new URL('../docs/adr/', import.meta.url)

/** What is wrong with an index, given the names of the pages and their first lines. */
function indexProblems(index: string, pages: ReadonlyMap<string, string>): string[] {
  const problems: string[] = []
  const linked = [...index.matchAll(/^\| \[(\d{4})\]\(([^)]+)\) \|/gm)].map(([, number, file]) => ({ number, file }))
  const taken = [...index.matchAll(/^- (\d{4}): \S/gm)].map(([, number]) => number as string)
  for (const { number, file } of linked) {
    if (!pages.has(file!)) problems.push(`the index links to ${file}, which is not there`)
    if (!file!.startsWith(`${number}-`)) problems.push(`the index calls ${file} ${number}`)
  }
  const rows = linked.map(({ number }) => number!)
  if (rows.toSorted().join() !== rows.join()) problems.push('the rows of the index are not in order')
  for (const [file, firstLine] of pages) {
    const number = file.slice(0, 4)
    if (linked.filter((row) => row.file === file).length !== 1) problems.push(`${file} must be in the index once`)
    if (!firstLine.startsWith(`# ${number}: `)) problems.push(`${file} must begin with "# ${number}: " and its title`)
    if (taken.includes(number)) problems.push(`${number} is a page and is said to have none`)
  }
  const numbers = [...pages.keys()].map((file) => file.slice(0, 4))
  for (const number of new Set(numbers.filter((each, i) => numbers.indexOf(each) !== i)))
    problems.push(`${number} is the number of two pages`)
  const last = Math.max(...numbers.map(Number), ...taken.map(Number))
  for (let i = 1; i <= last; i++) {
    const number = String(i).padStart(4, '0')
    if (!numbers.includes(number) && !taken.includes(number)) problems.push(`${number} is neither a page nor taken`)
  }
  return problems
}

describe('the index of decisions', () => {
  it('names every page once, and every number is a page or is taken', () => {
    const names = readdirSync(FOLDER).filter((name) => name !== 'README.md')
    const pages = new Map(
      names.sort().map((name) => [name, readFileSync(new URL(name, FOLDER), 'utf8').split('\n', 1)[0]!]),
    )
    expect(pages.size).toBeGreaterThan(0)
    expect(indexProblems(readFileSync(new URL('README.md', FOLDER), 'utf8'), pages)).toEqual([])
  })

  it('is found wrong when it is', () => {
    const row = (number: string, file = `${number}-a.md`) => `| [${number}](${file}) | A | a |\n`
    const page = (number: string, title = `# ${number}: A`): [string, string] => [`${number}-a.md`, title]
    const check = (index: string, ...pages: [string, string][]) => indexProblems(index, new Map(pages))
    expect(check(`${row('0001')}- 0002: later\n`, page('0001'))).toEqual([])
    expect(check('', page('0001'))).toEqual(['0001-a.md must be in the index once'])
    expect(check(row('0001') + row('0001'), page('0001'))).toEqual(['0001-a.md must be in the index once'])
    expect(check(row('0001') + row('0002'), page('0001'))).toEqual(['the index links to 0002-a.md, which is not there'])
    expect(check(row('0001') + row('0003'), page('0001'), page('0003'))).toEqual(['0002 is neither a page nor taken'])
    expect(check(`${row('0001')}- 0001: later\n`, page('0001'))).toEqual(['0001 is a page and is said to have none'])
    expect(check(row('0001'), page('0001', '# 1. A'))).toEqual(['0001-a.md must begin with "# 0001: " and its title'])
    expect(check(row('0002') + row('0001'), page('0001'), page('0002'))).toEqual([
      'the rows of the index are not in order',
    ])
    expect(check(row('0001') + row('0001', '0001-b.md'), page('0001'), ['0001-b.md', '# 0001: B'])).toEqual([
      '0001 is the number of two pages',
    ])
    expect(check(row('0002', '0001-a.md'), page('0001'))).toEqual(['the index calls 0001-a.md 0002'])
  })
})
