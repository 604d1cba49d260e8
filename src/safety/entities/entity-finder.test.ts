import { describe, expect, it } from 'vitest'
import { EntityFinder } from './entity-finder.ts'

const finder = new EntityFinder({ screens: ['pii', 'secrets'] })

/** What is found in a text, as `category:value`. */
const found = (text: string): string[] =>
  finder.find(text).map(({ category, start, end }) => `${category}:${text.slice(start, end)}`)

describe('EntityFinder', () => {
  it.each([
    ['write to jane.doe+news@mail.example.co.uk, please', 'email:jane.doe+news@mail.example.co.uk'],
    ['<müller@bücher.example>', 'email:müller@bücher.example'],
    ["o'brien_x@sub-domain.example.com.", "email:o'brien_x@sub-domain.example.com"],
    ['root@[10.1.2.3]', 'email:root@[10.1.2.3]'],
    ['+1 (415) 555-0100 ext. 12 is mine', 'phone:+1 (415) 555-0100 ext. 12'],
    ['(555)123-4567x89', 'phone:(555)123-4567x89'],
    ['Call me on 01.84.17.61.18!', 'phone:01.84.17.61.18'],
    ['ring +41 (0)44 668 18 00 now', 'phone:+41 (0)44 668 18 00'],
    ['0521 / 1234567', 'phone:0521 / 1234567'],
    ['fax: 9498777106', 'phone:9498777106'],
    ['780 6326 office', 'phone:780 6326'],
    ['4111 1111 1111 1111', 'card:4111 1111 1111 1111'],
    ['paid by 4111111111111111.0 today', 'card:4111111111111111'],
    ['3782-822463-10005', 'card:3782-822463-10005'],
    ['pay with 6759649826438453;', 'card:6759649826438453'],
    ['DE89 3704 0044 0532 0130 00 is it', 'iban:DE89 3704 0044 0532 0130 00'],
    ['(gb29nwbk60161331926819)', 'iban:gb29nwbk60161331926819'],
    ['SSN 078-05-1121', 'ssn:078-05-1121'],
    ['ssn is 078051121', 'ssn:078051121'],
    ['CPF 529.982.247-25', 'national-id:529.982.247-25'],
    ['12345678Z', 'national-id:12345678Z'],
    ['from 203.0.113.7:8080', 'ip:203.0.113.7'],
    ['http://[2001:db8::8a2e:370:7334]/', 'ip:2001:db8::8a2e:370:7334'],
    ['fe80::1ff:fe23:4567:890a%eth2 up', 'ip:fe80::1ff:fe23:4567:890a%eth2'],
    ['::ffff:192.0.2.128', 'ip:::ffff:192.0.2.128'],
    ['1:2:3:4:5:6:7:8', 'ip:1:2:3:4:5:6:7:8'],
  ])('finds in "%s"', (text, expected) => {
    expect(found(text)).toEqual([expected])
  })

  it.each([
    'On 2024-01-15 10:30:00,123 the job took 1,234.56 s and 1 234 567 rows.',
    'version 10.0.19041.1 and v1.2.3.4, Chrome/91.0.4.124, RFC 2616 section 14.9.3',
    'std::vector<int> a; d3::abs; A::B; 10:30:45; aa:bb:cc:dd:ee:ff; ::1; 127.0.0.1',
    '123e4567-e89b-12d3-a456-426614174000 and 12345678-1234-1234-1234-123456789012',
    'order number 780 6326, invoice 2024001234, ISBN 978-3-16-148410-0, ISBN 0306406152',
    'git@github.com:org/repo.git logo@2x.png x@w.transpose() @types/node@18.0.0 @someone',
    '40.7128, -74.0060 | 52.520008 13.404954 | 3.14159265358979',
    '$1234567 €12 345 678 and 1700000000 or 1700000000000',
    'Nature (2020) 123-145; pp. 100-200; (12) items; 50+ points; 1+1=2; C++11',
    'The SE10 9LS area, room B12, model X1234567, A4 paper, H2O, covid-19, 3com',
    '| 100 | 200 | 300 |\n|-----|-----|-----|\n| 1 | 2 | 3 |',
    '-----BEGIN CERTIFICATE-----\nMIIB',
    'A key starts with -----BEGIN PRIVATE KEY----- as you know.',
  ])('finds nothing in "%s"', (text) => {
    expect(found(text)).toEqual([])
  })

  it('marks a private key from its first line to its last', () => {
    const key = `-----BEGIN RSA PRIVATE KEY-----\n${'MIIEpAIBAAKCAQEA'.repeat(8)}\n-----END RSA PRIVATE KEY-----`
    expect(found(`a ${key} b`)).toEqual([`private-key:${key}`])
    expect(found(`a ${key.slice(0, 100)}`)).toEqual([`private-key:${key.slice(0, 100)}`])
  })

  it('reads what is written to look like something else, and marks it in the text as it was given', () => {
    expect(found('４１１１ １１１１ １１１１ １１１１')).toEqual(['card:４１１１ １１１１ １１１１ １１１１'])
    expect(found('jo\u200bhn\u00ad@exam\u2060ple.com!')).toEqual(['email:jo\u200bhn\u00ad@exam\u2060ple.com'])
    expect(found('𝐣𝐨𝐡𝐧@𝐞𝐱𝐚𝐦𝐩𝐥𝐞.𝐜𝐨𝐦')).toEqual(['email:𝐣𝐨𝐡𝐧@𝐞𝐱𝐚𝐦𝐩𝐥𝐞.𝐜𝐨𝐦'])
    expect(found('tel +49–30–1234567')).toEqual(['phone:+49–30–1234567'])
  })

  it('leaves allowed values and screens that are off alone', () => {
    const strict = new EntityFinder({ screens: ['pii'], allowed: ['help@example.com'] })
    const places = strict.find('help@example.com or me@example.com')
    expect(places.map(({ start }) => start)).toEqual([20])
    expect(new EntityFinder({ screens: ['secrets'] }).find('me@example.com 4111111111111111')).toEqual([])
  })
})
