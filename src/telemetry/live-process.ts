import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { ProcessSample } from './process-metrics.ts'

/**
 * Figures of this process from the operating system. Event-loop figures cover the time since the last call, so two
 * scrapers each see a part of the time.
 */

/** Interval of the histogram's timer; the histogram shows delays beyond it. */
const DELAY_RESOLUTION_MS = 10

const NS_PER_S = 1e9

export function makeProcessSampler(): () => ProcessSample {
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
  delay.enable()
  let utilization = performance.eventLoopUtilization()
  // Before its first tick the histogram returns NaN, and its values include the interval itself.
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
