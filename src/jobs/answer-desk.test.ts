import { describe, expect, it } from 'vitest'
import { MemoryQueue } from '../../test/support/memory-queue.ts'
import { msToUs, usToMs } from '../base/clock.ts'
import { VirtualClock } from '../base/virtual-clock.ts'
import type { MessageStore, RememberedAnswer } from '../lifecycle/message-ports.ts'
import { AnswerDesk, type HeldMessage } from './answer-desk.ts'

/** A desk with a queue and a store in memory; `done` is what happened, in order, with its time in milliseconds. */
class World {
  readonly clock = new VirtualClock()
  readonly queue = new MemoryQueue()
  readonly kept = new Map<string, string | undefined>()
  readonly done: string[] = []
  readonly faults: unknown[] = []
  readonly left: string[] = []
  readonly desk: AnswerDesk

  constructor() {
    const store = {
      keepAnswers: (_: unknown, answers: readonly { id: string; document: string }[]) => {
        for (const { id, document } of answers) if (!this.kept.has(id)) this.kept.set(id, document)
        this.#note('keep', answers)
        return Promise.resolve(answers.map(({ id }): RememberedAnswer => ({ id, document: this.kept.get(id) })))
      },
      markSent: (_: unknown, ids: readonly string[]) => Promise.resolve(this.#note('sent', ids)),
      markRemoved: (_: unknown, ids: readonly string[]) => Promise.resolve(this.#note('removed', ids)),
    } as unknown as MessageStore
    const { clock, queue } = this
    const onFault = (_: string, error: unknown): void => void this.faults.push(error)
    this.desk = new AnswerDesk({ clock, queue, store, onFault }, (id) => this.left.push(id))
  }

  async held(id: string, tenantId = 'a'): Promise<HeldMessage> {
    this.queue.put(id, 'text')
    const [message] = await this.queue.receive(1, 60_000, new AbortController().signal)
    return { message: message!, ref: { tenantId, queueId: 'q' } }
  }

  run(untilMs: number): Promise<void> {
    return this.clock.run(msToUs(untilMs))
  }

  #note(step: string, of: readonly unknown[]): void {
    this.done.push(`${usToMs(this.clock.now())} ${step} ${of.length}`)
  }
}

describe('the answer of a message', () => {
  it('is kept, then sent, then its message is removed', async () => {
    const world = new World()
    world.desk.answered(await world.held('m'), 'the answer')
    await world.run(10)
    expect(world.done).toEqual(['0 keep 1', '0 sent 1', '0 removed 1'])
    expect(world.queue.sent).toEqual([{ id: 'm', document: 'the answer' }])
    expect([world.queue.removed, world.left]).toEqual([['m'], ['m']])
  })

  it('that the sink does not take is sent again after a second, and its message stays', async () => {
    const world = new World()
    let refusals = 2
    world.queue.refuses = () => refusals-- > 0
    world.desk.answered(await world.held('m'), 'the answer')
    await world.run(1_500)
    expect([world.queue.sent, world.queue.removed, world.left]).toEqual([[], [], []])
    await world.run(5_000)
    expect(world.done).toEqual(['0 keep 1', '2000 sent 1', '2000 removed 1'])
    expect(world.faults).toEqual([])
  })

  it('is left after ten tries that the sink did not take, so that it holds no place', async () => {
    const world = new World()
    let tries = 0
    world.queue.refuses = () => ++tries > 0
    world.desk.answered(await world.held('m'), 'the answer')
    await world.run(60_000)
    expect([tries, world.left, world.queue.removed, world.faults.length]).toEqual([10, ['m'], [], 1])
  })

  it('goes on where a step has failed, and keeps nothing twice', async () => {
    const world = new World()
    let failures = 1
    world.queue.onCall = (call) => {
      if (call === 'remove' && failures-- > 0) throw new Error('the queue is away')
    }
    world.desk.answered(await world.held('m'), 'the answer')
    await world.run(5_000)
    expect(world.done).toEqual(['0 keep 1', '0 sent 1', '1000 removed 1'])
    expect([world.queue.sent.length, world.faults.length]).toEqual([1, 1])
  })

  it('that was kept before is sent as it was, and not once more when the sink has it', async () => {
    const world = new World()
    world.desk.known(await world.held('m'), { id: 'm', document: 'the first answer' })
    world.desk.known(await world.held('n'), { id: 'n', document: undefined })
    await world.run(10)
    expect(world.queue.sent).toEqual([{ id: 'm', document: 'the first answer' }])
    expect(world.queue.removed.toSorted()).toEqual(['m', 'n'])
  })

  it('is the first one that was kept, not a later one', async () => {
    const world = new World()
    world.kept.set('m', 'the first answer')
    world.desk.answered(await world.held('m'), 'a later answer')
    await world.run(10)
    expect(world.queue.sent).toEqual([{ id: 'm', document: 'the first answer' }])
  })

  it('of another tenant goes in a round of its own', async () => {
    const world = new World()
    world.desk.answered(await world.held('m'), '1')
    world.desk.answered(await world.held('n', 'b'), '2')
    await world.run(10)
    expect(world.done.filter((step) => step.endsWith('keep 1'))).toHaveLength(2)
    expect(world.left).toEqual(['m', 'n'])
  })

  it('has each step tried once more at the close, without a rest', async () => {
    const world = new World()
    world.queue.refuses = () => true
    world.desk.answered(await world.held('m'), 'the answer')
    await world.run(100)
    await world.desk.close()
    expect([world.left, world.queue.removed]).toEqual([[], []])
    expect(usToMs(world.clock.now())).toBe(100)
  })
})
