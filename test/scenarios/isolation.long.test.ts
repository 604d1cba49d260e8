import { describe, expect, it } from 'vitest'
import { BASELINE, readSeen, sameSeeds } from '../../bench/experiments/isolation/baseline.ts'
import { type Cell, cellNamed } from '../../bench/experiments/isolation/grid.ts'
import { type Criterion, judgeCell } from '../../bench/experiments/isolation/judge-cells.ts'
import { CellPlayer, type CellSeen } from '../../bench/experiments/isolation/play-cell.ts'
import { TRACED_POINTS } from '../../bench/experiments/isolation/traced-points.ts'

/**
 * Thirty cells of the isolation grid (`bench/experiments/isolation.ts`, which has all of them): what an offender does to two
 * calm tenants, and what it gets itself. The cells that tell most for their time: half of a minute of processor time a seed.
 */
const CELLS = [
  'answers-8k-slow',
  'answers-8k-fast',
  'answers-2k-fast',
  'long-among-short',
  'prompts-16k',
  'offline-30k',
  'leavers-30k',
  'p100-a2k-declared-late-interactive-r2-x50-keys',
  'p100-a500-declared-late-standard-r2-bursts-key',
  'p100-a8k-declared-stays-interactive-r8-x10-key',
  'p100-mixed30-lying-stays-offline-r2-bursts-org',
  'p100-mixed30-unset-stays-standard-r1-x10-keys',
  'p1k-a2k-lying-stays-standard-r1-x2-key',
  'p1k-a50-declared-stays-interactive-r2-x50-key',
  'p1k-mixed5-declared-late-interactive-r1-bursts-keys',
  'p8k-a1-declared-early-interactive-r1-x50-key',
  'p8k-a1-declared-stays-offline-r2-x10-key',
  'p8k-a1-lying-late-standard-r2-x50-key',
  'p8k-a2k-lying-early-standard-r2-x10-key',
  'p8k-a50-lying-stays-interactive-r1-x2-org',
  'p8k-a8k-unset-stays-offline-r2-x2-keys',
  'p8k-mixed30-declared-stays-standard-r1-x50-org',
  'p16k-a50-declared-early-standard-r8-x10-org',
  'p16k-a8k-unset-stays-interactive-r1-x10-key',
  'p16k-mixed5-lying-early-standard-r1-x2-org',
  'p30k-a1-lying-stays-offline-r1-x10-keys',
  'p30k-a50-lying-stays-standard-r1-x2-keys',
  'p30k-a500-lying-stays-interactive-r8-x2-org',
  'p30k-a8k-lying-stays-offline-r2-x50-keys',
  'p30k-mixed5-lying-late-interactive-r2-x10-org',
]

/** Three, as the experiment: of two hundred requests of a tenant, one in a hundred would be chance. */
const SEEDS = [1, 2, 3]

/**
 * Cells that fall short, of what, and why. A cell that no longer does fails too, until it is taken from here. Causes of the
 * cells with a name of their own were traced; the others have theirs by likeness.
 */
const KNOWN_GAPS: Readonly<Record<string, { readonly short: readonly Criterion[]; readonly because: string }>> = {
  'answers-8k-slow': { short: ['calm good'], because: 'room that is held over time is in no account' },
  'answers-8k-fast': { short: ['calm good', 'first token'], because: 'room that is held over time is in no account' },
  'long-among-short': { short: ['calm good'], because: 'room that is held over time is in no account' },
  'answers-2k-fast': { short: ['calm good'], because: 'room that is held over time is in no account' },
  'prompts-16k': { short: ['calm good', 'good work'], because: 'long prompts are read back to back' },
  'offline-30k': { short: ['calm good'], because: 'offline prompts are read in the way of chats' },
  'leavers-30k': { short: ['calm good'], because: 'prompts that clients left are still booked' },
  'p100-a500-declared-late-standard-r2-bursts-key': {
    short: ['calm good'],
    because: 'room that is held over time is in no account',
  },
  'p100-a2k-declared-late-interactive-r2-x50-keys': {
    short: ['calm good', 'first token'],
    because: 'room that is held over time is in no account',
  },
  'p100-mixed30-unset-stays-standard-r1-x10-keys': {
    short: ['calm good'],
    because: 'room that is held over time is in no account',
  },
  'p8k-a1-declared-early-interactive-r1-x50-key': {
    short: ['calm good'],
    because: 'prompts that clients left are still booked',
  },
  'p8k-a1-declared-stays-offline-r2-x10-key': {
    short: ['offender'],
    because: 'offline work is refused while a pool is half idle',
  },
  'p8k-a1-lying-late-standard-r2-x50-key': { short: ['calm good'], because: 'long prompts are read back to back' },
  'p8k-a50-lying-stays-interactive-r1-x2-org': { short: ['calm good'], because: 'long prompts are read back to back' },
  'p8k-mixed30-declared-stays-standard-r1-x50-org': {
    short: ['calm good'],
    because: 'long prompts are read back to back',
  },
  'p16k-a8k-unset-stays-interactive-r1-x10-key': {
    short: ['calm good'],
    because: 'room that is held over time is in no account',
  },
  'p16k-mixed5-lying-early-standard-r1-x2-org': {
    short: ['calm good', 'offender'],
    because: 'prompts that clients left are still booked',
  },
  'p30k-a1-lying-stays-offline-r1-x10-keys': {
    short: ['calm good', 'offender'],
    because: 'offline prompts are read in the way of chats',
  },
  'p30k-a50-lying-stays-standard-r1-x2-keys': {
    short: ['calm good', 'good work'],
    because: 'long prompts are read back to back',
  },
  'p30k-mixed5-lying-late-interactive-r2-x10-org': {
    short: ['calm good'],
    because: 'long prompts are read back to back',
  },
}

const before = readSeen(BASELINE, undefined)
const player = new CellPlayer()

function cellOf(id: string): Cell {
  const cell = TRACED_POINTS.find((point) => point.id === id) ?? cellNamed(id)
  if (cell === undefined) throw new Error(`there is no cell ${id}`)
  return cell
}

describe('isolation: calm tenants beside an offender', () => {
  it('knows gaps of these cells only', () => {
    expect(CELLS).toHaveLength(30)
    expect(CELLS).toEqual(expect.arrayContaining(Object.keys(KNOWN_GAPS)))
  })

  it.each(CELLS)('%s', { timeout: 240_000 }, async (id) => {
    const seen: CellSeen[] = []
    for (const seed of SEEDS) seen.push(await player.play(cellOf(id), seed))
    const compared = sameSeeds(before.get(id), seen)
    expect(compared, 'the baseline has the cell').toBeDefined()
    const { short, calmGood, firstToken, got, work } = judgeCell(seen, compared)
    const figures = `calm good ${calmGood.toFixed(3)}, p95 ÷ promise ${firstToken.toFixed(2)}, offender got ${got.toFixed(2)}, good work ÷ before ${work?.toFixed(3)}`
    expect(short, figures).toEqual(KNOWN_GAPS[id]?.short ?? [])
  })
})
