import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { missing, pathOf } from './support/installed.ts'

/** The documentation site as it is built: no dead link, no other host, and a search that works from the disk. */
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const why = missing('chromium')
let folder = ''

beforeAll(() => {
  // Eleventy takes an output folder that is relative to where it runs.
  folder = mkdtempSync(join(tmpdir(), 'spillway-site-'))
  const eleventy = join(ROOT, 'node_modules', '@11ty', 'eleventy', 'cmd.cjs')
  const args = [eleventy, '--config=site/eleventy.config.mjs', `--output=${relative(ROOT, folder)}`, '--quiet']
  const built = spawnSync(process.execPath, args, { cwd: ROOT, encoding: 'utf8' })
  if (built.status !== 0) throw new Error(built.stdout + built.stderr)
}, 300_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const pages = () => globSync('**/*.html', { cwd: folder }).map((path) => join(folder, path))
const attributes = (html: string) => [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].map(([, value]) => value!)

describe('the built site', () => {
  it('has no dead link and no dead anchor', () => {
    const ids = new Map(
      pages().map((path) => [
        path,
        new Set([...readFileSync(path, 'utf8').matchAll(/ id="([^"]*)"/g)].map(([, id]) => id)),
      ]),
    )
    expect(ids.size).toBeGreaterThan(100)
    const dead: string[] = []
    for (const page of ids.keys())
      for (const link of attributes(readFileSync(page, 'utf8'))) {
        if (/^(https?|data|mailto):/.test(link)) continue
        const [file = '', part] = decodeURIComponent(link).split('#')
        const target = file === '' ? page : resolve(dirname(page), file)
        if (!existsSync(target) || (part !== undefined && ids.get(target)?.has(part) === false))
          dead.push(`${relative(folder, page)}: ${link}`)
      }
    expect([...new Set(dead)]).toEqual([])
  })

  it.skipIf(why !== undefined)(
    `is read, searched and followed from the disk, on a telephone too ${why ?? ''}`,
    async () => {
      const browser = await chromium.launch({ executablePath: pathOf('chromium'), args: ['--no-sandbox'] })
      try {
        for (const width of [390, 1280]) {
          const page = await browser.newPage({ viewport: { width, height: 800 } })
          const asked: string[] = []
          const errors: string[] = []
          page.on('request', (request) => asked.push(request.url()))
          page.on('pageerror', (error) => errors.push(error.message))
          await page.goto(pathToFileURL(join(folder, 'index.html')).href)
          await page.fill('#query', 'token bucket')
          await page.waitForSelector('#hits a')
          await page.press('#query', 'Enter')
          await page.waitForURL(/html#/)
          expect(await page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')).toBe(true)
          expect(asked.filter((url) => !/^(file|data):/.test(url))).toEqual([])
          expect(errors).toEqual([])
          await page.close()
        }
      } finally {
        await browser.close()
      }
    },
    120_000,
  )
})
