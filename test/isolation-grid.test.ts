import { describe, expect, it } from 'vitest'
import { coveringRows, pairsOf } from '../bench/experiments/isolation/covering.ts'
import { cellNamed, drawnCells, gridCells, gridRows, SIZES } from '../bench/experiments/isolation/grid.ts'
import { judgeCell } from '../bench/experiments/isolation/judge-cells.ts'
import type { CellSeen } from '../bench/experiments/isolation/play-cell.ts'

function allPairs(sizes: readonly number[]): Set<string> {
  const pairs = new Set<string>()
  const each = (size: number | undefined): number[] => [...Array(size ?? 0).keys()]
  for (const [a] of sizes.entries())
    for (let b = a + 1; b < sizes.length; b++)
      for (const x of each(sizes[a])) for (const y of each(sizes[b])) pairs.add(`${a} ${x} ${b} ${y}`)
  return pairs
}

describe('the grid of the isolation experiment', () => {
  it('has every pair of values in three cells at least, and about a hundred cells', () => {
    const counts = new Map([...allPairs(SIZES)].map((pair) => [pair, 0]))
    for (const pair of gridRows().flatMap(pairsOf)) counts.set(pair, (counts.get(pair) ?? 0) + 1)
    expect(Math.min(...counts.values())).toBe(3)
    expect(counts.size).toBe(allPairs(SIZES).size)
    expect(gridCells().length).toBeGreaterThanOrEqual(100)
    expect(gridCells().length).toBeLessThanOrEqual(130)
  })

  it.each([[[2, 2]], [[3, 2, 4, 2]], [[5, 5, 5, 5, 5]]])(
    'covers all pairs of %j, by few rows and by its seed',
    (sizes) => {
      const rows = coveringRows(sizes, 1, 7)
      expect(new Set(rows.flatMap(pairsOf))).toEqual(allPairs(sizes))
      const [largest = 1, second = 1] = sizes.toSorted((a, b) => b - a)
      expect(rows.length).toBeLessThanOrEqual(2 * largest * second)
      expect(coveringRows(sizes, 1, 7)).toEqual(rows)
    },
  )

  it('finds a cell by its name', () => {
    for (const cell of [...gridCells(), ...drawnCells(20, 3)]) expect(cellNamed(cell.id)).toEqual(cell)
    expect(cellNamed('p100-a50-unset-stays-standard-r3-x2-key')).toBeUndefined()
  })

  it('draws other cells by another seed', () => {
    expect(drawnCells(200, 1)).toHaveLength(200)
    expect(drawnCells(200, 1)).toEqual(drawnCells(200, 1))
    expect(drawnCells(200, 1)).not.toEqual(drawnCells(200, 2))
  })
})

describe('a judged cell', () => {
  const calm = {
    arrived: 200,
    good: 198,
    aloneGood: 200,
    refused: 2,
    late: 0,
    refusedBeside: 1,
    promisedMs: 1_000,
    ttftMs: [100],
  }
  const seen: CellSeen = {
    id: 'cell',
    seed: 1,
    calm: [calm, calm],
    times: 10,
    got: 1.2,
    goodWorkS: 50,
    offenderGoodWorkS: 20,
    laws: [],
    cpuS: 1,
  }
  const worse = { ...calm, good: 190, refused: 10 }
  const late = { ...calm, ttftMs: [100, 1_100] }

  it.each<[string, CellSeen, CellSeen | undefined, readonly string[]]>([
    ['holds at its bounds', { ...seen, got: 0.9 }, { ...seen, goodWorkS: 51 }, []],
    ['falls short where one calm tenant does', { ...seen, calm: [calm, worse] }, undefined, ['calm good']],
    ['falls short by late first tokens', { ...seen, calm: [late, calm] }, undefined, ['first token']],
    ['falls short where the offender starves', { ...seen, got: 0.89 }, undefined, ['offender']],
    ['falls short where engines idle', seen, { ...seen, goodWorkS: 52 }, ['good work']],
    ['falls short of a law', { ...seen, laws: ['L1: …'] }, undefined, ['laws']],
  ])('%s', (_, one, before, short) => {
    const judged = judgeCell([one], before && [before])
    expect(judged.short).toEqual(short)
    expect(judged.missed > 0).toBe(short.length > 0)
  })

  it('judges all seeds together', () => {
    expect(judgeCell([seen, { ...seen, calm: [calm, { ...calm, good: 199 }] }]).short).toEqual([])
    expect(judgeCell([seen, { ...seen, calm: [calm, worse] }])).toMatchObject({ refused: 16, calmGoodWorst: 0.95 })
  })
})
