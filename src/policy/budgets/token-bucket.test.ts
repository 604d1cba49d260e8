import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { TokenBucket } from './token-bucket.ts'

const MINUTE = 60_000_000n

/** The same bucket in exact rationals: level in tokens × 60,000,000, as BigInt, refilled from first principles. */
class NaiveBucket {
  #level: bigint
  #at = 0
  readonly #perMinute: number
  readonly #burst: number

  constructor(perMinute: number, burst: number) {
    this.#perMinute = perMinute
    this.#burst = burst
    this.#level = BigInt(burst) * MINUTE
  }

  levelAt(now: number): bigint {
    const refilled = this.#level + BigInt(now - this.#at) * BigInt(this.#perMinute)
    const full = BigInt(this.#burst) * MINUTE
    return refilled > full ? full : refilled
  }

  fits(now: number, amount: number): boolean {
    return this.levelAt(now) >= BigInt(amount) * MINUTE
  }

  move(now: number, amount: number): void {
    const full = BigInt(this.#burst) * MINUTE
    const level = this.levelAt(now) + BigInt(amount) * MINUTE
    this.#level = level > full ? full : level < -full ? -full : level
    this.#at = now
  }
}

const limit = fc.record({
  perMinute: fc.integer({ min: 1, max: 10_000_000 }),
  burst: fc.integer({ min: 1, max: 100_000_000 }),
})
const steps = fc.array(
  fc.record({
    waitUs: fc.oneof(fc.nat(10), fc.nat(1_000_000), fc.nat(2 ** 40)),
    share: fc.double({ min: 0, max: 1.2, noNaN: true }),
    doing: fc.constantFrom('take', 'giveBack', 'takeMore'),
  }),
  { maxLength: 60 },
)

describe('token bucket', () => {
  it('reads as in the header', () => {
    const bucket = new TokenBucket(0, { perMinute: 60, burst: 10 })
    for (let i = 0; i < 10; i++) bucket.take(0, 1)
    expect(bucket.fitsAt(0, 1)).toBe(1_000_000)
    expect(bucket.fitsAt(999_999, 1)).toBe(1_000_000)
    expect(bucket.fitsAt(1_000_000, 1)).toBe(1_000_000)
    expect(bucket.view(1_000_000)).toEqual({ limit: 10, remaining: 1, resetUs: 9_000_000 })
  })

  it('agrees with a naive twin to the microsecond', () => {
    fc.assert(
      fc.property(limit, steps, (terms, script) => {
        const bucket = new TokenBucket(0, terms)
        const twin = new NaiveBucket(terms.perMinute, terms.burst)
        let now = 0
        for (const { waitUs, share, doing } of script) {
          now += waitUs
          const amount = Math.floor(share * terms.burst)
          const fitsAt = bucket.fitsAt(now, amount)
          expect(fitsAt === now).toBe(twin.fits(now, amount))
          expect(fitsAt === undefined).toBe(amount > terms.burst)
          // The instant it names is the first at which it fits.
          const isFirst =
            fitsAt === undefined || fitsAt === now || (twin.fits(fitsAt, amount) && !twin.fits(fitsAt - 1, amount))
          expect(isFirst).toBe(true)
          if (doing === 'take' && fitsAt === now) {
            bucket.take(now, amount)
            twin.move(now, -amount)
          } else if (doing === 'giveBack') {
            bucket.giveBack(now, amount)
            twin.move(now, amount)
          } else if (doing === 'takeMore') {
            bucket.takeMore(now, amount)
            twin.move(now, -amount)
          }
          const whole = Number(twin.levelAt(now) / MINUTE)
          expect(bucket.view(now).remaining).toBe(Math.max(0, whole))
        }
      }),
    )
  })

  it('lets at most rate · window + burst through in any window', () => {
    const arrivals = fc.array(fc.record({ waitUs: fc.nat(3_000_000), amount: fc.integer({ min: 1, max: 40 }) }), {
      minLength: 1,
      maxLength: 150,
    })
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 6_000 }),
        fc.integer({ min: 1, max: 100 }),
        arrivals,
        (perMinute, burst, script) => {
          const bucket = new TokenBucket(0, { perMinute, burst })
          const passed: { at: number; amount: number }[] = []
          let now = 0
          for (const { waitUs, amount } of script) {
            now += waitUs
            if (bucket.fitsAt(now, amount) !== now) continue
            bucket.take(now, amount)
            passed.push({ at: now, amount })
          }
          for (let from = 0; from < passed.length; from++) {
            let sum = 0
            for (let to = from; to < passed.length; to++) {
              sum += passed[to]?.amount ?? 0
              const windowUs = (passed[to]?.at ?? 0) - (passed[from]?.at ?? 0)
              expect(sum).toBeLessThanOrEqual((perMinute * windowUs) / 60_000_000 + burst + 1e-9)
            }
          }
        },
      ),
    )
  })

  it('never fits what is bigger than its burst, and never refills at rate 0', () => {
    const bucket = new TokenBucket(0, { perMinute: 0, burst: 5 })
    expect(bucket.fitsAt(0, 6)).toBeUndefined()
    bucket.take(0, 5)
    expect(bucket.fitsAt(2 ** 50, 1)).toBeUndefined()
  })

  it('gives nothing away when its terms change', () => {
    const bucket = new TokenBucket(0, { perMinute: 60, burst: 10 })
    bucket.take(0, 8)
    bucket.retune(0, { perMinute: 600, burst: 100 })
    expect(bucket.view(0).remaining).toBe(2)
    bucket.retune(0, { perMinute: 600, burst: 1 })
    expect(bucket.view(0).remaining).toBe(1)
    expect(bucket.isFull(0)).toBe(true)
  })
})
