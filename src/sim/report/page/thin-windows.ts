import type { SeriesWindow } from '../report-series.ts'

/** Most windows in a plot; a longer run is shown in wider windows. */
export const PAGE_WINDOWS_MAX = 480

/** Merges neighbouring windows: counts are summed; of latencies the worst is kept, never averaged. */
export function thinWindows(all: readonly SeriesWindow[]): readonly SeriesWindow[] {
  // After the last arrival answers only run out, which is not part of the workload.
  const windows = all.slice(0, all.findLastIndex(({ arrivals }) => arrivals > 0) + 1)
  if (windows.length <= PAGE_WINDOWS_MAX) return windows
  const each = Math.ceil(windows.length / PAGE_WINDOWS_MAX)
  const thin: SeriesWindow[] = []
  for (let i = 0; i < windows.length; i += each) thin.push(merged(windows.slice(i, i + each)))
  return thin
}

function merged(windows: readonly SeriesWindow[]): SeriesWindow {
  const sum = (of: (window: SeriesWindow) => number): number => windows.reduce((total, window) => total + of(window), 0)
  const worst = (of: (window: SeriesWindow) => number | undefined): number | undefined => {
    const values = windows.map(of).filter((value): value is number => value !== undefined)
    return values.length === 0 ? undefined : Math.max(...values)
  }
  const admitted = sum((window) => window.admitted)
  const rungs: Record<string, number> = {}
  for (const window of windows) {
    for (const [rung, share] of Object.entries(window.rungs)) {
      rungs[rung] = (rungs[rung] ?? 0) + (admitted === 0 ? 0 : (share * window.admitted) / admitted)
    }
  }
  return {
    atS: windows[0]?.atS ?? 0,
    arrivals: sum((window) => window.arrivals),
    admitted,
    shed: sum((window) => window.shed),
    completed: sum((window) => window.completed),
    failed: sum((window) => window.failed),
    queueDepth: worst((window) => window.queueDepth) ?? 0,
    ttftP50: worst((window) => window.ttftP50),
    ttftP95: worst((window) => window.ttftP95),
    itlP95: worst((window) => window.itlP95),
    utilisation: sum((window) => window.utilisation) / windows.length,
    kv: sum((window) => window.kv) / windows.length,
    rungs,
  }
}
