// Pictures of the console for docs/images, while the demo runs a 20 × spike of one tenant against a server of its own.
// usage: npm run -s console-shots (Chromium needed; takes two minutes). Look at them before you commit them.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const PORT = 18_431
const ADDRESS = `http://127.0.0.1:${PORT}`
const FOLDER = 'docs/images'
const SECONDS = 90
/** The demo's spike is in its middle third. */
const LOOK_AFTER_MS = SECONDS * 1_000 * 0.5
const SIZES = [
  { width: 390, height: 844 },
  { width: 820, height: 1_180 },
  { width: 1_440, height: 800 },
]
const OTHERS = [
  { name: 'tenant', key: 'sk-demo-initech', hash: 'now', width: 820, colorScheme: 'light' },
  { name: 'what-if', key: 'sk-demo-admin', hash: 'what-if', width: 820, colorScheme: 'dark' },
]

const executablePath = ['chromium', 'chromium-browser', 'google-chrome']
  .map((name) => join('/usr/bin', name))
  .find((path) => existsSync(path))
const cli = (args, env = {}) =>
  spawn(process.execPath, ['src/cli/cli.ts', ...args], { stdio: 'ignore', env: { ...process.env, ...env } })

async function untilServed() {
  for (let i = 0; i < 120; i++) {
    if (
      await fetch(`${ADDRESS}/health/ready`).then(
        (answer) => answer.ok,
        () => false,
      )
    )
      return
    await new Promise((resolve) => setTimeout(resolve, 500))
  }
  throw new Error('The server did not start.')
}

async function shoot(browser, { name, key, hash, width, height = 900, colorScheme }) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme })
  await page.goto(`${ADDRESS}/console#${hash}`)
  await page.fill('input[type=password]', key)
  await page.keyboard.press('Enter')
  await page.getByText('live', { exact: true }).waitFor()
  await page.waitForTimeout(2_500)
  await page.screenshot({ path: join(FOLDER, `console-${name}-${width}-${colorScheme}.png`) })
  await page.close()
}

const server = cli(['serve'], { PORT: String(PORT), SPILLWAY_STORE_PATH: 'memory:' })
let load
try {
  await untilServed()
  load = cli(['demo', '--url', ADDRESS, '--seconds', String(SECONDS)])
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--font-render-hinting=none'] })
  await new Promise((resolve) => setTimeout(resolve, LOOK_AFTER_MS))
  for (const colorScheme of ['light', 'dark'])
    for (const size of SIZES)
      await shoot(browser, { name: 'now', key: 'sk-demo-admin', hash: 'now', ...size, colorScheme })
  for (const other of OTHERS) await shoot(browser, other)
  await browser.close()
} finally {
  load?.kill('SIGINT')
  server.kill('SIGTERM')
}
