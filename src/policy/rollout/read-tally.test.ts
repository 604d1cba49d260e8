import { describe, expect, it } from 'vitest'
import { Capital } from './capital.ts'
import { METRICS } from './judge.ts'
import { readTally } from './read-tally.ts'

const capital = new Capital().tally()
const account = { whole: capital, step: capital }
const accounts = Object.fromEntries(METRICS.map((name) => [name, account]))
const GOOD = {
  stable: 'm@1',
  canary: 'm@2',
  epoch: { began: 1, trial: 0, step: 2 },
  tally: { stepPairs: 3, accounts },
}
const withAccount = (changed: unknown): unknown => ({
  ...GOOD,
  tally: { ...GOOD.tally, accounts: { ...accounts, errors: changed } },
})

describe('what another gateway’s judge says', () => {
  it('is heard as it is', () => {
    expect(readTally(GOOD)).toBe(GOOD)
    const proven = withAccount({ ...account, proof: capital })
    expect(readTally(proven)).toBe(proven)
  })

  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['a list', [GOOD]],
    ['no stable release', { ...GOOD, stable: 7 }],
    ['no canary', { ...GOOD, canary: undefined }],
    ['no epoch', { ...GOOD, epoch: null }],
    ['half an epoch', { ...GOOD, epoch: { began: 1, trial: 0 } }],
    ['no tally', { ...GOOD, tally: [] }],
    ['a negative number of pairs', { ...GOOD, tally: { ...GOOD.tally, stepPairs: -1 } }],
    ['no accounts', { ...GOOD, tally: { stepPairs: 1, accounts: [] } }],
    ['no account of a metric', withAccount(undefined)],
    ['half an account', withAccount({ whole: capital })],
    ['a proof that is none', withAccount({ ...account, proof: 'yes' })],
    ['a capital without parts', withAccount({ ...account, step: { count: 1, parts: [] } })],
    ['a capital that is not finite', withAccount({ ...account, whole: { count: 1, parts: [1, Number.NaN] } })],
    ['a capital that is infinite', withAccount({ ...account, whole: { count: Infinity, parts: [1] } })],
    ['parts that are no list', withAccount({ ...account, whole: { count: 1, parts: { length: 1 } } })],
  ])('is not heard when it is %s', (_, body) => expect(readTally(body)).toBeUndefined())
})
