import { describe, expect, it } from 'vitest'
import { POOL_DENIAL_DEFAULTS, PoolDenial } from './pool-denial.ts'

const { inRowMax, trialUs, trialUsMax } = POOL_DENIAL_DEFAULTS
const KEY = 'it does not accept our key'

function deniedPool(): PoolDenial {
  const denial = new PoolDenial()
  for (let i = 0; i < inRowMax; i++) denial.observe(0, 'chat', KEY)
  return denial
}

describe('a pool that is denied', () => {
  it('is closed after several denials in a row, and not before', () => {
    const denial = new PoolDenial()
    for (let i = 1; i < inRowMax; i++) denial.observe(0, 'chat', KEY)
    expect(denial.because(0, 'chat')).toBeUndefined()
    denial.observe(0, 'chat', 'its quota is used up')
    expect(denial.because(0, 'chat')).toBe('its quota is used up')
  })

  it('counts anew after an answer', () => {
    const denial = new PoolDenial()
    for (let i = 0; i < 3 * inRowMax; i++) denial.observe(0, 'chat', i % inRowMax === 0 ? undefined : KEY)
    expect(denial.because(0, 'chat')).toBeUndefined()
  })

  it('is closed to the kind of request that it denies', () => {
    expect(deniedPool().because(0, 'embedding')).toBeUndefined()
  })

  it('has one trial at a time, each after twice as long, up to a bound', () => {
    const denial = deniedPool()
    let now = 0
    for (const waitUs of [trialUs, 2 * trialUs, 4 * trialUs, trialUsMax, trialUsMax]) {
      expect(denial.because(now + waitUs - 1, 'chat')).toBe(KEY)
      now += waitUs
      expect(denial.because(now, 'chat')).toBeUndefined()
      denial.admitted(now, 'chat')
      expect(denial.because(now, 'chat')).toBe(KEY)
      denial.observe(now, 'chat', KEY)
    }
  })

  it('is not closed for longer by attempts that were under way when it was closed', () => {
    const denial = deniedPool()
    for (let i = 0; i < 10; i++) denial.observe(1_000, 'chat', KEY)
    expect(denial.because(trialUs, 'chat')).toBeUndefined()
  })

  it('has another trial when one was given up, and is open when one is answered', () => {
    const denial = deniedPool()
    denial.admitted(trialUs, 'chat')
    expect(denial.because(2 * trialUs, 'chat')).toBeUndefined()
    denial.admitted(2 * trialUs, 'chat')
    denial.observe(2 * trialUs, 'chat', undefined)
    expect(denial.because(2 * trialUs, 'chat')).toBeUndefined()
  })
})
