import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { IngressMeter, IngressMeters, METERS_MAX } from './ingress-allowance.ts'

const SECOND = 1_000_000
const KIB = 1_024
const limits = { requestsPerMinute: 60, bytesPerMinute: 60 * KIB, failedKeysPerMinute: 60 }

describe('a meter', () => {
  it('lets a burst of ten seconds through, then the rate', () => {
    const meter = new IngressMeter(0, limits)
    const waits = Array.from({ length: 12 }, () => meter.takeRequest(0))
    expect(waits).toEqual([...Array.from({ length: 10 }, () => undefined), SECOND, SECOND])
    expect(meter.takeRequest(SECOND)).toBeUndefined()
    expect(meter.takeRequest(SECOND)).toBe(SECOND)
  })

  it('takes a body larger than the burst, and then none until the debt is paid', () => {
    const meter = new IngressMeter(0, limits)
    expect(meter.takeBytes(0, 15 * KIB)).toBeUndefined()
    expect(meter.takeBytes(0, 1)).toBe(6 * SECOND)
    expect(meter.takeBytes(6 * SECOND, 1)).toBeUndefined()
  })

  it('counts wrong keys apart from requests', () => {
    const meter = new IngressMeter(0, limits)
    for (let i = 0; i < 10; i++) meter.takeFailedKey(0)
    expect(meter.failedKeysWaitUs(0)).toBe(SECOND)
    expect(meter.takeRequest(0)).toBeUndefined()
  })

  it('never lets more through than rate and burst, and one body more of bytes', () => {
    const visits = fc.array(fc.tuple(fc.nat(2 * SECOND), fc.nat(20 * KIB)), { maxLength: 100 })
    fc.assert(
      fc.property(visits, (steps) => {
        const meter = new IngressMeter(0, limits)
        let now = 0
        let requests = 0
        let kibibytes = 0
        let largest = 0
        for (const [elapsedUs, bytes] of steps) {
          now += elapsedUs
          if (meter.takeRequest(now) === undefined) requests++
          if (bytes === 0 || meter.takeBytes(now, bytes) !== undefined) continue
          kibibytes += Math.ceil(bytes / KIB)
          largest = Math.max(largest, Math.ceil(bytes / KIB))
        }
        expect(requests).toBeLessThanOrEqual(10 + now / SECOND)
        // A debt is bounded by one burst, so bodies over twice the burst are forgiven their rest.
        expect(kibibytes).toBeLessThanOrEqual(10 + now / SECOND + largest + steps.length * Math.max(0, largest - 20))
      }),
    )
  })

  it('takes the largest limits that a configuration may have', () => {
    const most = { requestsPerMinute: 1e9, bytesPerMinute: 1e12, failedKeysPerMinute: 1e9 }
    expect(new IngressMeter(0, most).takeRequest(0)).toBeUndefined()
  })
})

describe('the meters of all callers', () => {
  it('are bounded, and quiet callers make room first', () => {
    const meters = new IngressMeters<number>(limits, { metersMax: 100 })
    const busy = meters.of(0, 0)
    for (let id = 1; id < 100; id++) meters.of(0, id)
    busy.takeRequest(0)
    for (let id = 100; id < 1_000; id++) {
      meters.of(0, id)
      expect(meters.size).toBe(100)
    }
    expect(meters.find(0)).toBe(busy)
    expect(meters.find(1)).toBeUndefined()
  })

  it('are bounded when all are busy, too', () => {
    const meters = new IngressMeters<number>(limits, { metersMax: 10 })
    for (let id = 0; id < 1_000; id++) meters.of(0, id).takeRequest(0)
    expect(meters.size).toBe(10)
  })

  it('have a bound by default', () => {
    const meters = new IngressMeters<number>(limits)
    for (let id = 0; id < METERS_MAX + 100; id++) meters.of(0, id)
    expect(meters.size).toBe(METERS_MAX)
  })
})
