import { expect, it } from 'vitest'
import type { ConsoleEvent } from '../console/console-view.ts'
import { RefusalTail } from './refusals.ts'

const event = (id: number, kind: string, tenant?: string): ConsoleEvent => ({
  id,
  at: id,
  kind,
  tenant,
  text: '',
  ticketId: undefined,
})
const ids = (events: readonly ConsoleEvent[]): number[] => events.map(({ id }) => id)

it('tells each refusal once, of the tenant that is asked for, also after a restart of the server', () => {
  const [all, one] = [new RefusalTail(undefined), new RefusalTail('acme')]
  const first = [event(1, 'rejected', 'acme'), event(2, 'replica-health'), event(3, 'failed', 'globex')]
  expect(ids(all.take({ events: first }))).toEqual([1, 3])
  expect(ids(one.take({ events: first }))).toEqual([1])
  const next = [...first, event(4, 'blocked', 'acme'), event(5, 'rung-changed', 'acme')]
  expect(ids(all.take({ events: next }))).toEqual([4])
  expect(ids(all.take({ events: next }))).toEqual([])
  expect(ids(all.take({ events: [] }))).toEqual([])
  expect(ids(all.take({ events: [event(1, 'expired', 'acme')] }))).toEqual([1])
})
