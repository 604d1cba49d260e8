import { expect, it } from 'vitest'
import type { OutputAsk, OutputPair } from '../domain/output-pair.ts'
import { type HostViewParts, makeHostView } from './host-view.ts'
import type { Seat } from './seat.ts'

const ASK: OutputAsk = { model: 'm', tenantId: undefined, limit: 3 }
const pairAt = (at: number): OutputPair => ({ at, ticketId: `t${at}` }) as OutputPair
const partsOf = (outputs: HostViewParts['outputs']) => ({ outputs }) as HostViewParts

it('outputs of shadows are those of all processes of the host, the newest first', async () => {
  const answered = new Map<string, (value: never) => unknown>()
  const asked: unknown[] = []
  const line = {
    on: (what: string, answer: (value: never) => unknown) => void answered.set(what, answer),
    ask(_what: string, value: unknown) {
      asked.push(value)
      return Promise.resolve([[pairAt(9), pairAt(2)], undefined, [pairAt(5)]])
    },
  }
  const seat = { line, hasStore: false } as unknown as Seat
  const view = makeHostView(
    seat,
    partsOf(({ limit }) => [pairAt(7), pairAt(1)].slice(0, limit)),
  )
  expect((await view.outputs(ASK)).map(({ at }) => at)).toEqual([9, 7, 5])
  expect(asked).toEqual([{ what: 'outputs', value: ASK }])
  expect(answered.get('outputs')?.({ ...ASK, limit: 1 } as never)).toEqual([pairAt(7)])
})

it('outputs of a gateway that is the only process are its own', async () => {
  const view = makeHostView(
    undefined,
    partsOf(() => [pairAt(1)]),
  )
  expect(await view.outputs(ASK)).toEqual([pairAt(1)])
})
