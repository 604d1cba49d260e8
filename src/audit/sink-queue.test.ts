import { describe, expect, it } from 'vitest'
import { SinkQueue } from './sink-queue.ts'

interface Pause {
  readonly ms: number
  readonly run: () => void
}

function made(answers: ('taken' | 'refused')[]) {
  const got: string[] = []
  const pauses: Pause[] = []
  const told: string[] = []
  const queue = new SinkQueue({
    sink: {
      name: 'test',
      send(note) {
        got.push(note)
        return answers.shift() === 'refused' ? Promise.reject(new Error('away')) : Promise.resolve()
      },
    },
    later(ms, run) {
      pauses.push({ ms, run })
      return () => {}
    },
    complain: (problem) => told.push(problem),
  })
  return { queue, got, pauses, told }
}

const settle = async (): Promise<void> => {
  for (let i = 0; i < 200; i++) await Promise.resolve()
}

describe('a place outside for checkpoints', () => {
  it('gets each of them in order', async () => {
    const { queue, got } = made([])
    for (const note of ['a', 'b', 'c']) queue.offer(note)
    await queue.close()
    expect(got).toEqual(['a', 'b', 'c'])
    expect(queue.view()).toMatchObject({ sent: 3, failed: 0, dropped: 0, waiting: 0, isAway: false })
  })

  it('that is away is told of once, tried again more and more seldom, and then gets what waited', async () => {
    const { queue, got, pauses, told } = made(['refused', 'refused', 'refused'])
    queue.offer('a')
    for (let i = 0; i < 3; i++) {
      await settle()
      pauses[i]?.run()
    }
    queue.offer('b')
    await settle()
    expect(pauses.map(({ ms }) => ms)).toEqual([1_000, 2_000, 4_000])
    expect(told).toHaveLength(1)
    expect(got).toEqual(['a', 'a', 'a', 'a', 'b'])
    expect(queue.view()).toMatchObject({ sent: 2, failed: 3, isAway: false })
  })

  it('keeps a bounded number waiting, the newest', async () => {
    const { queue, got, pauses } = made(['refused'])
    queue.offer('0')
    await settle()
    for (let i = 1; i <= 100; i++) queue.offer(String(i))
    expect(queue.view()).toMatchObject({ waiting: 64, dropped: 37, isAway: true })
    pauses[0]?.run()
    await settle()
    expect(got.slice(1)).toEqual(Array.from({ length: 64 }, (_, i) => String(i + 37)))
  })

  it('is tried once more at the end, and no longer waited for', async () => {
    const { queue, got } = made(['refused', 'refused'])
    queue.offer('a')
    await settle()
    queue.offer('b')
    await queue.close()
    expect(got).toEqual(['a', 'b'])
    expect(queue.view()).toMatchObject({ waiting: 1, isAway: true })
  })
})
