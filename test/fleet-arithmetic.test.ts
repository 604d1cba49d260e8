import { describe, expect, it } from 'vitest'
import { fleetFor, type Measured, type Wanted } from '../bench/experiments/kit/fleet-arithmetic.ts'

/** The arithmetic of internet scale on round figures, by hand. */
const MEASURED: Measured = {
  perReplicaS: 20,
  promptTokens: 900,
  outputTokens: 100,
  answerS: 4,
  usdPerReplicaHour: 4,
  requestCpuS: 0.001,
  pieceCpuS: 0.000_1,
  bytesPerStream: 40_000,
  bytesPerPiece: 250,
  bytesPerAuditEvent: 500,
  replicasPerCell: 10,
}
const WANTED: Wanted = {
  requestsPerS: 1_000,
  regions: 3,
  regionsLost: 1,
  useRatio: 0.95,
  tokensPerPiece: 1,
  coresPerHost: 8,
}
const fleet = (wanted: Partial<Wanted> = {}) => fleetFor({ ...WANTED, ...wanted }, MEASURED)

describe('the arithmetic of a large fleet', () => {
  it('sizes every region for its part when another is lost', () => {
    expect(fleet().replicas).toBe(3 * Math.ceil(500 / 19))
    expect(fleet({ regionsLost: 0 }).replicas).toBe(3 * Math.ceil(1_000 / 3 / 19))
    expect(fleet({ regions: 1, regionsLost: 0 }).replicas).toBe(Math.ceil(1_000 / 19))
    expect(() => fleet({ regions: 1 })).toThrow('at least one region')
  })

  it('counts cells and hosts by region, never a part of one', () => {
    expect(fleet().cells).toBe(3 * 3)
    // 1 ms and a hundred events of 0.1 ms: 11 ms of CPU for each of 500 requests a second.
    expect(fleet().gatewayCores).toBe(3 * Math.ceil((500 * 0.011) / 0.95))
    expect(fleet().gatewayHosts).toBe(3)
  })

  it('pays for events, of which engines that gather tokens send fewer', () => {
    expect(fleet({ tokensPerPiece: 10 }).gatewayCores).toBe(3 * Math.ceil((500 * 0.002) / 0.95))
    expect(fleet({ tokensPerPiece: 10 }).gbitPerS).toBeCloseTo(fleet().gbitPerS / 10)
    // An answer has one event at least.
    expect(fleet({ tokensPerPiece: 1_000 }).gbitPerS).toBeCloseTo((1_000 * 250 * 8) / 1e9)
  })

  it('knows what is open, kept and paid', () => {
    expect(fleet()).toMatchObject({ openStreams: 4_000, streamGb: 0.16, gbitPerS: 0.2 })
    expect(fleet().auditTbPerDay).toBeCloseTo((1_000 * 500 * 86_400) / 1e12)
    expect(fleet().usdPerHour).toBe(81 * 4)
    expect(fleet().usdPerMillionTokens).toBeCloseTo((1e6 * 324) / (3_600 * 1_000 * 1_000))
  })
})
