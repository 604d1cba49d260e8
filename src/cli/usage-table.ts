/** A table whose first columns are names and whose others are numbers, aligned to the right. */
export function numbersToTheRight(rows: ReadonlyArray<readonly string[]>, nameCount: number): string {
  const widths = (rows[0] ?? []).map((_, column) =>
    rows.reduce((max, row) => Math.max(max, row[column]?.length ?? 0), 0),
  )
  const cellOf = (cell: string, column: number): string =>
    column < nameCount ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)
  return rows.map((row) => row.map(cellOf).join('  ').trimEnd()).join('\n')
}
