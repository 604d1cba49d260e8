import { describe, expect, it } from 'vitest'
import { makeWriteBatch, TurnBatch } from './live-turn-batch.ts'

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

describe('a batch of one turn', () => {
  it('does its tasks in order, after the turn and before the next one ends', async () => {
    const batch = new TurnBatch()
    const done: string[] = []
    batch.add(() => done.push('first'))
    batch.add(() => done.push('second'))
    await Promise.resolve()
    expect(done).toEqual([])
    await nextTurn()
    expect(done).toEqual(['first', 'second'])
  })

  it('leaves a task that a task adds to the next turn, so that the loop is never held', async () => {
    const batch = new TurnBatch()
    const done: number[] = []
    const again = (): void => {
      if (done.push(done.length) < 3) batch.add(again)
    }
    batch.add(again)
    await nextTurn()
    expect(done).toEqual([0])
    await nextTurn()
    await nextTurn()
    expect(done).toEqual([0, 1, 2])
  })

  it('goes on behind a task that throws', async () => {
    const batch = new TurnBatch()
    const done: string[] = []
    const thrown: unknown[] = []
    const listeners = process.listeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    process.once('uncaughtException', (error) => thrown.push(error.message))
    try {
      batch.add(() => {
        throw new Error('broken')
      })
      batch.add(() => done.push('behind'))
      await nextTurn()
      await nextTurn()
    } finally {
      for (const listener of listeners) process.on('uncaughtException', listener)
    }
    expect(thrown).toEqual(['broken'])
    expect(done).toEqual(['behind'])
  })
})

describe('a batch of writes', () => {
  it('waits for what is going on, with all its promises, and for no further turn', async () => {
    const writes = makeWriteBatch()
    const done: string[] = []
    const serve = async (name: string): Promise<void> => {
      await Promise.resolve()
      writes.add(() => done.push(`write ${name}`))
      await Promise.resolve()
      done.push(`served ${name}`)
    }
    setImmediate(() => done.push('next turn'))
    void serve('a')
    void serve('b')
    await nextTurn()
    expect(done).toEqual(['served a', 'served b', 'write a', 'write b', 'next turn'])
  })
})
