import { expect, it } from 'vitest'
import { makeKey, makeTenant } from '../../test/support/demand.ts'
import type { Request } from '../domain/request.ts'
import { forwardHeaders, readRegionAnswer, regionAnswer } from './region.ts'

it('reads what it writes, and takes nothing else for an answer', () => {
  const outlook = { readyReplicaCount: 3, waitUs: 12_000, prefillUsPerToken: 40, drainPerUs: 0.5, isShedding: true }
  const text = regionAnswer('us', new Map([['llama', outlook]]))
  expect(readRegionAnswer(text)).toEqual(new Map([['llama', outlook]]))
  for (const other of ['', 'null', '[]', '{}', '{"object":"spillway.region"}', '<html>'])
    expect(readRegionAnswer(other)).toBeUndefined()
})

it('takes nonsense for the worst: nobody ready', () => {
  const text =
    '{"object":"spillway.region","models":{"a":{"ready_replicas":"many","wait_ms":-1,"cost_per_ms":null},"b":null}}'
  const worst = { readyReplicaCount: 0, waitUs: 0, prefillUsPerToken: 0, drainPerUs: 0, isShedding: false }
  expect(readRegionAnswer(text)).toEqual(
    new Map([
      ['a', worst],
      ['b', worst],
    ]),
  )
})

it('sends what is left of the deadline, one hop more, and the first origin', () => {
  const slo = { name: 's', ttftUs: 2_000_000, interTokenUs: 1, totalUs: 1 }
  const request = {
    tenant: makeTenant('a'),
    key: makeKey('k', 'a'),
    band: 'standard',
    bid: 0,
    slo,
  } as unknown as Request
  const headers = (over: Partial<Request>) => {
    const list = forwardHeaders({ ...request, deadlineAt: 5_000_000, ...over }, 1_500_000, 'eu')
    return Object.fromEntries(list.flatMap((name, i) => (i % 2 === 0 ? [[name, list[i + 1]]] : [])))
  }
  expect(headers({})).toMatchObject({
    'x-spillway-tenant': 'a',
    'x-spillway-origin': 'eu',
    'x-spillway-hops': '1',
    'x-spillway-deadline-ms': '3500',
    'x-spillway-cut-off': 'false',
  })
  expect(headers({ hops: 1, origin: 'ap', deadlineAt: 1 })).toMatchObject({
    'x-spillway-origin': 'ap',
    'x-spillway-hops': '2',
    'x-spillway-deadline-ms': '1',
  })
})
