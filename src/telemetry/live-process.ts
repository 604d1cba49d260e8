import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { ProcessSample } from './process-metrics.ts'

/**
 * What does the operating system say of this process? Event-loop figures are those since the last call: whoever
 * scrapes twice as often sees twice as fine, and two scrapers share what there is.
 */

/** The histogram's timer fires this often; what it shows is lateness beyond that. */
const DELAY_RESOLUTION_MS = 10

const NS_PER_S = 1e9

export function makeProcessSampler(): () => ProcessSample {
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
  delay.enable()
  let utilization = performance.eventLoopUtilization()
  // Before its first tick the histogram says NaN, and what it measures includes its own interval.
  const late = (ns: number): number =>
    Math.max(0, (Number.isFinite(ns) ? ns : 0) / NS_PER_S - DELAY_RESOLUTION_MS / 1e3)
  return () => {
    const cpu = process.cpuUsage()
    const memory = process.memoryUsage()
    const now = performance.eventLoopUtilization()
    const busy = performance.eventLoopUtilization(now, utilization).utilization
    utilization = now
    const sample: ProcessSample = {
      cpuSeconds: (cpu.user + cpu.system) / 1e6,
      residentBytes: memory.rss,
      heapUsedBytes: memory.heapUsed,
      startedAtSeconds: performance.timeOrigin / 1e3,
      eventLoopUtilizationRatio: busy,
      eventLoopDelaySeconds: {
        p50: late(delay.count === 0 ? 0 : delay.percentile(50)),
        p99: late(delay.count === 0 ? 0 : delay.percentile(99)),
        max: late(delay.count === 0 ? 0 : delay.max),
      },
    }
    delay.reset()
    return sample
  }
}
