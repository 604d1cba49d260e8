import { describe, expect, it } from 'vitest'
import { VirtualClock } from '../base/virtual-clock.ts'
import { type Arriving, addressGroup, HOLDERS_MAX, Ingress, Visit } from './ingress.ts'

const MIB = 1_048_576

function makeIngress(limits = {}): { ingress: Ingress; clock: VirtualClock } {
  const clock = new VirtualClock()
  const ingress = new Ingress({
    clock,
    limits: { requestsPerMinute: 60, bytesPerMinute: 60 * MIB, failedKeysPerMinute: 12, ...limits },
    bodyBytesMax: MIB,
    breathe: () => Promise.resolve(),
    salt: 'salt',
  })
  return { ingress, clock }
}

const from = (clientAddress: string, key?: string): Arriving => ({
  req: { headers: key === undefined ? {} : { authorization: `Bearer ${key}` } },
  clientAddress,
})

/** What is said to a request; undefined when it is read. */
function codeOf(ingress: Ingress, request: ReturnType<typeof from>, isValid?: boolean): string | undefined {
  const visit = ingress.arrive(request)
  if (!(visit instanceof Visit)) return visit.code
  if (isValid !== undefined) visit.noteKey(isValid)
  return undefined
}

it('slows an address without a valid key after 2,000 requests at once, and a key not', () => {
  const { ingress } = makeIngress({ requestsPerMinute: 120_000 })
  const readOf = (request: ReturnType<typeof from>): number =>
    Array.from({ length: 20_000 }, () => codeOf(ingress, request)).filter((code) => code === undefined).length
  codeOf(ingress, from('10.0.0.1', 'good'), true)
  expect(readOf(from('10.0.0.1'))).toBe(1_999)
  expect(readOf(from('10.0.0.1', 'good'))).toBe(20_000)
})

describe('a key', () => {
  it('has an allowance of its own once it has proved valid', () => {
    const { ingress } = makeIngress()
    expect(codeOf(ingress, from('10.0.0.1', 'good'), true)).toBeUndefined()
    // The rest of the address's ten requests, by strangers.
    for (let i = 0; i < 9; i++) expect(codeOf(ingress, from('10.0.0.1'))).toBeUndefined()
    expect(codeOf(ingress, from('10.0.0.1'))).toBe('ingress-requests')
    for (let i = 0; i < 10; i++) expect(codeOf(ingress, from('10.0.0.1', 'good'), true)).toBeUndefined()
    expect(codeOf(ingress, from('10.0.0.1', 'good'))).toBe('ingress-requests')
    // It is the same key from another address.
    expect(codeOf(ingress, from('10.0.0.2', 'good'))).toBe('ingress-requests')
    expect(codeOf(ingress, from('10.0.0.2'))).toBeUndefined()
  })

  it('of an issuer has one allowance for all the tokens of its subject', () => {
    const { ingress } = makeIngress()
    const call = (token: string, keyId: string): string | undefined => {
      const visit = ingress.arrive(from('10.0.0.1', token))
      if (!(visit instanceof Visit)) return visit.code
      visit.noteKey(true, keyId)
      return undefined
    }
    expect(call('a.1.x', 'corp@ada')).toBeUndefined()
    expect(call('a.2.x', 'corp@ada')).toBeUndefined()
    for (let i = 0; i < 10; i++) expect(call(`a.${1 + (i % 2)}.x`, 'corp@ada')).toBeUndefined()
    expect(call('a.1.x', 'corp@ada')).toBe('ingress-requests')
    expect(call('a.2.x', 'corp@ada')).toBe('ingress-requests')
    // Another subject, and a token that is new here, are charged to the address first.
    expect(call('b.1.x', 'corp@bob')).toBeUndefined()
    expect(call('a.3.x', 'corp@ada')).toBeUndefined()
    expect(call('a.3.x', 'corp@ada')).toBe('ingress-requests')
    expect(call('b.1.x', 'corp@bob')).toBeUndefined()
    expect(ingress.view).toMatchObject({ keys: 2, tokens: 4 })
  })

  it('of an issuer is remembered within a bound', () => {
    const { ingress } = makeIngress({ requestsPerMinute: 1_000_000 })
    for (let i = 0; i < HOLDERS_MAX + 10; i++) {
      // An address may send 2,000 at once.
      const visit = ingress.arrive(from(`10.0.${i >> 8}.1`, `t${i}`))
      if (visit instanceof Visit) visit.noteKey(true, 'corp@ada')
    }
    expect(ingress.view).toMatchObject({ keys: 1, tokens: HOLDERS_MAX })
  })

  it('that is new is not looked at where too many were wrong; others go on', async () => {
    const { ingress, clock } = makeIngress({ requestsPerMinute: 6_000 })
    codeOf(ingress, from('10.0.0.1', 'good'), true)
    expect(codeOf(ingress, from('10.0.0.1', 'a'), false)).toBeUndefined()
    expect(codeOf(ingress, from('10.0.0.1', 'b'), false)).toBeUndefined()
    expect(ingress.arrive(from('10.0.0.1', 'c'))).toMatchObject({
      code: 'ingress-failed-keys',
      blame: 'tenant',
      retryAfterUs: 5_000_000,
    })
    expect(codeOf(ingress, from('10.0.0.1', 'good'), true)).toBeUndefined()
    expect(codeOf(ingress, from('10.0.0.1'))).toBeUndefined()
    expect(codeOf(ingress, from('10.0.0.2', 'c'), true)).toBeUndefined()
    await clock.run(5_000_000)
    expect(codeOf(ingress, from('10.0.0.1', 'd'), true)).toBeUndefined()
  })
})

describe('memory', () => {
  it('for callers is bounded, however many addresses and keys there are', () => {
    const { ingress } = makeIngress({ failedKeysPerMinute: 1_000_000 })
    for (let i = 0; i < 30_000; i++) {
      codeOf(ingress, from(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, `key-${i}`), i % 2 === 0)
    }
    expect(ingress.view.addresses).toBe(10_000)
    expect(ingress.view.keys).toBe(10_000)
  })

  it('for bodies is bounded for each caller by what it announces, and for all by what arrives', () => {
    const { ingress } = makeIngress({ bytesPerMinute: 600 * MIB })
    const visitOf = (address: string): Visit => ingress.arrive(from(address)) as Visit
    const visits = Array.from({ length: 5 }, (_, i) => visitOf(`10.0.0.${i}`))
    for (let body = 0; body < 16; body++) expect(visits[0]?.expect(MIB)).toBeUndefined()
    expect(visits[0]?.expect(1)).toMatchObject({ code: 'ingress-bytes', retryAfterUs: 1_000_000 })
    // What one caller has announced keeps nobody else out.
    for (const visit of visits.slice(1)) expect(visit.expect(16 * MIB)).toBeUndefined()
    for (const visit of visits.slice(0, 4)) expect(visit.buffer(16 * MIB)).toBeUndefined()
    expect(visits[4]?.buffer(1)).toMatchObject({ code: 'ingress-full', blame: 'platform' })
    for (const visit of visits) visit.release()
    expect(ingress.view.bufferedBytes).toBe(0)
    expect(visits[0]?.expect(MIB)).toBeUndefined()
    expect(visits[4]?.buffer(MIB)).toBeUndefined()
  })

  it('for bodies is limited in bytes a minute', () => {
    const { ingress } = makeIngress()
    const visit = ingress.arrive(from('10.0.0.1')) as Visit
    for (let i = 0; i < 10; i++) expect(visit.expect(MIB)).toBeUndefined()
    visit.release()
    expect(visit.expect(1)).toMatchObject({ code: 'ingress-bytes', blame: 'tenant' })
  })
})

it('large bodies take turns, with rounds for everybody else in between', async () => {
  const order: string[] = []
  const breaths = (first: number): string[] => [0, 1, 2].map((more) => `breath ${first + more}`)
  let count = 0
  const ingress = new Ingress({
    clock: new VirtualClock(),
    limits: { requestsPerMinute: 60, bytesPerMinute: MIB, failedKeysPerMinute: 60 },
    bodyBytesMax: MIB,
    breathe: () => {
      order.push(`breath ${++count}`)
      return Promise.resolve()
    },
    salt: '',
  })
  const visit = ingress.arrive(from('10.0.0.1')) as Visit
  await Promise.all(['a', 'b', 'c'].map((name) => visit.turn().then(() => order.push(name))))
  expect(order).toEqual([...breaths(1), 'a', ...breaths(4), 'b', ...breaths(7), 'c'])
})

it.each([
  ['10.1.2.3', '10.1.2.3'],
  ['::ffff:10.1.2.3', '10.1.2.3'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8:1:2::6', '2001:db8:1:2'],
  ['2001:db8::6', '2001:db8:0:0'],
  ['1::3:4:5:6:7:8', '1:0:3:4'],
  ['::1', '0:0:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  [undefined, 'unknown'],
])('%s is in the group %s', (address, group) => {
  expect(addressGroup(address)).toBe(group)
})

it('refusals are told once a second, with their number', async () => {
  const told: string[] = []
  const clock = new VirtualClock()
  const ingress = new Ingress({
    clock,
    limits: { requestsPerMinute: 6, bytesPerMinute: MIB, failedKeysPerMinute: 60 },
    bodyBytesMax: MIB,
    breathe: () => Promise.resolve(),
    salt: '',
    onRefused: (code, count) => told.push(`${clock.now()} ${code} ${count}`),
  })
  for (let i = 0; i < 1_000; i++) ingress.arrive(from('10.0.0.1'))
  expect(told).toEqual([])
  await clock.run(5_000_000)
  expect(told).toEqual(['1000000 ingress-requests 999'])
  ingress.arrive(from('10.0.0.1'))
  await clock.run(10_000_000)
  expect(told).toEqual(['1000000 ingress-requests 999', '6000000 ingress-requests 1'])
})
