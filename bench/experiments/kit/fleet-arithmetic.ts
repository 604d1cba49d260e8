/**
 * How much of everything do so many requests a second need? Arithmetic on measured figures: queueing is left to the
 * simulation, and every assumption is a field here.
 *
 * Worked example: 1,000 requests a second in three regions of which one may be lost, 20 a second for a replica that is
 * used to 0.95: the two that are left must do it all, so each has 1,000 ÷ 2 ÷ 19 = 27 replicas, and all three 81.
 */
export interface Measured {
  /** Requests a second that one replica serves in time. */
  readonly perReplicaS: number
  readonly promptTokens: number
  readonly outputTokens: number
  /** Mean time of a whole answer. */
  readonly answerS: number
  readonly usdPerReplicaHour: number
  /** Gateway: CPU seconds of a request without its stream, and of one piece of a stream. */
  readonly requestCpuS: number
  readonly pieceCpuS: number
  readonly bytesPerStream: number
  readonly bytesPerPiece: number
  readonly bytesPerAuditEvent: number
  readonly replicasPerCell: number
}

export interface Wanted {
  readonly requestsPerS: number
  readonly regions: number
  /** Regions that may be lost at once, without a request refused for it. */
  readonly regionsLost: number
  /** Share of a replica's capacity that is planned with. */
  readonly useRatio: number
  /** Tokens in one piece of a stream, as the engines send them. */
  readonly tokensPerPiece: number
  readonly coresPerHost: number
}

export interface Fleet {
  readonly replicas: number
  readonly cells: number
  readonly gatewayCores: number
  readonly gatewayHosts: number
  readonly openStreams: number
  readonly streamGb: number
  readonly gbitPerS: number
  readonly auditTbPerDay: number
  readonly usdPerHour: number
  readonly usdPerMillionTokens: number
}

const DAY_S = 86_400

export function fleetFor(wanted: Wanted, measured: Measured): Fleet {
  const { requestsPerS, regions, regionsLost, useRatio, tokensPerPiece, coresPerHost } = wanted
  if (regionsLost >= regions) throw new Error('at least one region must be left')
  // Every region is sized for its part when the others that may be lost are gone.
  const regionPerS = requestsPerS / (regions - regionsLost)
  const inRegion = (need: number): number => regions * Math.ceil(need)
  const replicas = inRegion(regionPerS / (measured.perReplicaS * useRatio))
  const cells = inRegion(replicas / regions / measured.replicasPerCell)
  const pieces = Math.max(1, measured.outputTokens / tokensPerPiece)
  const requestCpuS = measured.requestCpuS + pieces * measured.pieceCpuS
  const gatewayCores = inRegion((regionPerS * requestCpuS) / useRatio)
  const openStreams = Math.round(requestsPerS * measured.answerS)
  const usdPerHour = replicas * measured.usdPerReplicaHour
  const tokensPerHour = 3_600 * requestsPerS * (measured.promptTokens + measured.outputTokens)
  return {
    replicas,
    cells,
    gatewayCores,
    gatewayHosts: inRegion(gatewayCores / regions / coresPerHost),
    openStreams,
    streamGb: (openStreams * measured.bytesPerStream) / 1e9,
    gbitPerS: (requestsPerS * pieces * measured.bytesPerPiece * 8) / 1e9,
    auditTbPerDay: (requestsPerS * measured.bytesPerAuditEvent * DAY_S) / 1e12,
    usdPerHour,
    usdPerMillionTokens: (1e6 * usdPerHour) / tokensPerHour,
  }
}
