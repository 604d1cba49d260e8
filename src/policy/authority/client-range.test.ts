import { BlockList } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { clientAddressOf } from './client-address.ts'
import { type ClientRange, formatRange, isInRange, isRangeWithin, parseAddress, parseRange } from './client-range.ts'

function range(text: string): ClientRange {
  const parsed = parseRange(text)
  if (typeof parsed === 'string') throw new Error(`${text} ${parsed}`)
  return parsed
}

const contains = (within: string, address: string): boolean => {
  const parsed = parseAddress(address)
  return parsed !== undefined && isInRange(range(within), parsed)
}

describe('a range', () => {
  it.each([
    ['10.0.0.0/8', '10.255.0.1', true],
    ['10.0.0.0/8', '11.0.0.1', false],
    ['10.0.0.0/8', '::ffff:10.0.0.1', true],
    ['10.0.0.0/8', '::ffff:a00:1', true],
    ['::ffff:10.0.0.0/104', '10.9.9.9', true],
    ['::ffff:10.0.0.0/104', '11.9.9.9', false],
    ['0.0.0.0/0', '255.255.255.255', true],
    ['0.0.0.0/0', '2001:db8::1', false],
    ['::/0', '2001:db8::1', true],
    ['::/0', '10.0.0.1', false],
    ['::/0', '::ffff:10.0.0.1', false],
    ['203.0.113.7', '203.0.113.7', true],
    ['203.0.113.7', '203.0.113.6', false],
    ['128.0.0.0/1', '200.0.0.1', true],
    ['2001:db8::/33', '2001:db8:7fff::1', true],
    ['2001:db8::/33', '2001:db8:8000::1', false],
    ['fe80::/10', 'fe80::1%eth0', true],
    ['2001:DB8::1', '2001:db8:0:0:0:0:0:1', true],
    ['64:ff9b::/96', '64:ff9b::10.0.0.1', true],
    ['10.0.0.0/8', '64:ff9b::10.0.0.1', false],
  ])('%s and %s: %s', (within, address, expected) => expect(contains(within, address)).toBe(expected))

  it.each([
    '',
    '10.0.0',
    '10.0.0.0.0/8',
    '010.0.0.0/8',
    '10.0.0.256',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/08',
    '10.0.0.0/',
    '10.1.2.3/8',
    '0x0a.0.0.0/8',
    '2001:db8::1::/64',
    '2001:db8::/129',
    '1:2:3:4:5:6:7/64',
    '1:2:3:4:5:6:7:8:9',
    '1::2:3:4:5:6:7:8',
    '::ffff:10.0.0.0/64',
    'fe80::1%eth0/64',
    '12345::/16',
    '10.0.0.1:80',
    '10.0.0.0/8\n',
    ' 10.0.0.0/8',
    'example.org',
    '１０.0.0.0/8',
    `${'0'.repeat(80)}::/8`,
  ])('refuses %j', (text) => expect(parseRange(text)).toBeTypeOf('string'))

  it('says which network was probably meant', () => {
    expect(parseRange('10.1.2.3/8')).toContain('write 10.0.0.0/8')
    expect(parseRange('2001:db8::1/32')).toContain('write 2001:db8:0:0:0:0:0:0/32')
  })

  const octet = fc.nat(255)
  const v4 = fc.tuple(octet, octet, octet, octet).map((bytes) => bytes.join('.'))
  const v6 = fc.array(fc.nat(0xffff), { minLength: 8, maxLength: 8 }).filter((groups) => groups[0] !== 0)
  const near = fc.tuple(v6, fc.nat(127)).map(([groups, bit]) => ({
    one: groups.map((group) => group.toString(16)).join(':'),
    other: groups.map((group, i) => (i === bit >> 4 ? group ^ (0x8000 >> (bit & 15)) : group).toString(16)).join(':'),
  }))

  it('agrees with the block lists of Node, for IPv4 and IPv6', () => {
    fc.assert(
      fc.property(v4, v4, fc.nat(32), (network, address, bits) => {
        const list = new BlockList()
        list.addSubnet(network, bits, 'ipv4')
        const cut = masked(network, bits)
        expect(contains(cut, address)).toBe(list.check(address, 'ipv4'))
        expect(contains(cut, network)).toBe(true)
      }),
    )
    fc.assert(
      fc.property(near, fc.nat(128), ({ one, other }, bits) => {
        const list = new BlockList()
        list.addSubnet(one, bits, 'ipv6')
        expect(contains(masked(one, bits), other)).toBe(list.check(other, 'ipv6'))
      }),
    )
  })

  /** The range around an address, from the advice that a range with too many bits gets. */
  function masked(address: string, bits: number): string {
    const parsed = parseRange(`${address}/${bits}`)
    return typeof parsed === 'string' ? parsed.slice(parsed.indexOf('write ') + 6) : formatRange(parsed)
  }

  it('lies within another exactly when every address does', () => {
    const cases = ['0.0.0.0/0', '10.0.0.0/8', '10.0.0.0/9', '10.128.0.0/9', '10.0.0.1', '::/0', '2001:db8::/32']
    for (const outer of cases) {
      for (const inner of cases) {
        const isAll = cases.every((address) => !contains(inner, hostOf(address)) || contains(outer, hostOf(address)))
        if (isRangeWithin(range(outer), range(inner))) expect(isAll, `${inner} in ${outer}`).toBe(true)
      }
    }
    expect(isRangeWithin(range('10.0.0.0/8'), range('10.128.0.0/9'))).toBe(true)
    expect(isRangeWithin(range('10.128.0.0/9'), range('10.0.0.0/8'))).toBe(false)
    expect(isRangeWithin(range('::/0'), range('10.0.0.0/8'))).toBe(false)
  })

  const hostOf = (text: string): string => text.replace(/\/.*$/, '')
})

describe('the client’s address', () => {
  const trusted = [range('10.0.0.0/8'), range('fd00::/8')]
  it.each([
    ['no proxy is trusted', '10.0.0.1', '1.2.3.4', [], '10.0.0.1'],
    ['the socket is a stranger’s', '203.0.113.9', '10.1.1.1', trusted, '203.0.113.9'],
    ['one proxy', '10.0.0.1', '203.0.113.9', trusted, '203.0.113.9'],
    ['a list whose left end was invented', '10.0.0.1', '1.2.3.4, 203.0.113.9, 10.0.0.2', trusted, '203.0.113.9'],
    ['only proxies', '10.0.0.1', '10.0.0.3,10.0.0.2', trusted, '10.0.0.3'],
    ['a mapped socket', '::ffff:10.0.0.1', '2001:db8::1', trusted, '2001:db8::1'],
    ['no header', '10.0.0.1', undefined, trusted, '10.0.0.1'],
    ['a port', '10.0.0.1', '203.0.113.9:443', trusted, '203.0.113.9'],
    ['brackets', '10.0.0.1', '[2001:db8::1]', trusted, '2001:db8::1'],
    ['brackets and a port', '10.0.0.1', '[2001:db8::1]:443', trusted, '2001:db8::1'],
    ['a trusted proxy with a port', '10.0.0.1', '203.0.113.9, 10.0.0.2:80', trusted, '203.0.113.9'],
  ] as const)('%s', (_, socket, header, ranges, expected) => {
    expect(clientAddressOf(socket, header, ranges)).toEqual(parseAddress(expected))
  })

  it.each(['unknown', '', '203.0.113.9, ', '203.0.113.9:', '203.0.113.9:x', '[203.0.113.9', '[::1]x', '"10.0.0.3"'])(
    'is not known behind a proxy that wrote %j',
    (header) => {
      expect(clientAddressOf('10.0.0.1', header, trusted)).toBeUndefined()
    },
  )

  it('looks at a bounded number of proxies', () => {
    const header = ['203.0.113.9', ...Array<string>(40).fill('10.0.0.2')].join(',')
    expect(clientAddressOf('10.0.0.1', header, trusted)).toEqual(parseAddress('10.0.0.2'))
  })
})
