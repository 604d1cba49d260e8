/**
 * What does the console's page cost its browser: how soon is something painted, and how long does the main thread need to
 * redraw a chart of an hour of seconds?
 *
 * A real Chromium without a window, on this machine, against a server in this process. Needs Chromium.
 *
 *   node bench/micro/console-page.ts [rounds]
 */
import { chromium } from 'playwright-core'
import { hashKey } from '../../src/config/key-hash.ts'
import { pathOf } from '../../test/support/installed.ts'
import { startPlatform, testTree } from '../../test/support/start-platform.ts'

const ROUNDS = Number(process.argv[2] ?? 9)
const ADMIN_KEY = 'sk-bench-admin'

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number
const told = (values: readonly number[]): string =>
  `median ${median(values).toFixed(1)} ms, largest ${Math.max(...values).toFixed(1)} ms`

/** Runs in the page: the chart of *Now* with three lines, given an hour that is a second further each time. */
const REDRAW = `(async () => {
  const { default: uPlot } = await import('/console/vendor/uplot.js')
  const seconds = 3600
  const at = (shift) => [0, 1, 2, 3].map((row) => Array.from({ length: seconds }, (_, i) =>
    row === 0 ? 1_700_000_000 + i + shift : 50 * row + 40 * Math.sin((i + shift) / (20 * row)) + ((i * 7919) % 13)))
  const line = (label, stroke) => ({ label, stroke, width: 1.5, points: { show: false } })
  const place = document.createElement('div')
  document.body.append(place)
  const plot = new uPlot({ width: 700, height: 190, series: [{}, line('a', 'blue'), line('b', 'green'), line('c', 'red')] }, at(0), place)
  const times = []
  for (let round = 1; round <= 60; round++) {
    const data = at(round)
    const began = performance.now()
    plot.setData(data)
    await Promise.resolve()
    times.push(performance.now() - began)
    await new Promise((resolve) => requestAnimationFrame(resolve))
  }
  return times.slice(10)
})()`

const platform = await startPlatform(testTree({ admin: { keys: [{ id: 'bench', hash: hashKey(ADMIN_KEY) }] } }))
const browser = await chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox'] })
const [paints, lives, redraws]: [number[], number[], number[]] = [[], [], []]
for (let round = 0; round < ROUNDS; round++) {
  const page = await browser.newPage({ viewport: { width: 1_280, height: 900 } })
  await page.goto(`${platform.address}/console`)
  await page.fill('input[type=password]', ADMIN_KEY)
  await page.keyboard.press('Enter')
  await page.getByText('live', { exact: true }).waitFor()
  const began = performance.now()
  await page.reload()
  await page.getByText('Promises kept, last minute').waitFor()
  lives.push(performance.now() - began)
  paints.push(Number(await page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")))
  if (round < 3) redraws.push(...((await page.evaluate(REDRAW)) as number[]))
  await page.close()
}
await browser.close()
await platform.close()
console.log(`first paint:                      ${told(paints)} (${ROUNDS} times)`)
console.log(`from asking to the first figures: ${told(lives)}`)
console.log(
  `redraw of an hour of seconds:     ${told(redraws)} (${redraws.length} redraws of a chart with three lines)`,
)
