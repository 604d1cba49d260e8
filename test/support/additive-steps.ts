import type { Migration } from '../../src/store/migrations.ts'

/**
 * What in a step would break a program that does not know it? Programs of the step before read and write the tables as
 * they knew them: what they name must stay, and what they leave out must have a value of its own.
 */
const BREAKING: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bdrop\s+(table|column|view|type|function|index|trigger|constraint)\b/i, 'takes something away'],
  [/\brename\b/i, 'renames something'],
  [/\balter\s+column\s+\w+\s+(set\s+data\s+)?type\b/i, 'changes a type'],
  [/\bset\s+not\s+null\b/i, 'wants a value that older programs may leave out'],
  [/\badd\s+(constraint|primary|unique|check|foreign)\b/i, 'forbids what older programs may write'],
  [/\bcreate\s+unique\s+index\b/i, 'forbids what older programs may write'],
  [/\b(truncate|delete\s+from)\b/i, 'deletes rows'],
]

const ADDED_COLUMN = /\badd\s+column\s+(?:if\s+not\s+exists\s+)?\w+[^,;]*/gi

export function breakingParts({ step, sql }: Migration): string[] {
  return sql.split(';').flatMap((statement) => {
    const unused = /--\s*unused since step (\d+)/i.exec(statement)
    // A whole version has run without it: the programs that used it are beyond the window.
    if (unused !== null && Number(unused[1]) < step) return []
    const plain = statement.replace(/--.*$/gm, '').trim()
    const found = BREAKING.flatMap(([words, how]) => (words.test(plain) ? [how] : []))
    const needy = (plain.match(ADDED_COLUMN) ?? []).filter(
      (column) => /\bnot\s+null\b/i.test(column) && !/\bdefault\b|\bgenerated\b/i.test(column),
    )
    return [...found, ...needy.map(() => 'adds a column that older programs leave empty')]
  })
}
