/**
 * Loaded into the measured server: tells on SIGWINCH what V8 holds, as one line of JSON. It collects nothing before: a
 * forced collection of a large heap takes more memory outside of it than what is looked for.
 */
import { writeSync } from 'node:fs'
import { getHeapSpaceStatistics } from 'node:v8'

process.on('SIGWINCH', () => {
  const heapBytes = getHeapSpaceStatistics().reduce((sum, space) => sum + space.space_size, 0)
  const { heapUsed: usedBytes, external: externalBytes } = process.memoryUsage()
  writeSync(2, `heap-report ${JSON.stringify({ heapBytes, usedBytes, externalBytes })}\n`)
})
