import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { runCli } from './run-cli.ts'

/** A server whose tenant has an allowance: it refuses, and says when to come back, or that it is no use. */

const folder = mkdtempSync(join(tmpdir(), 'spillway-add-'))
const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve))
  rmSync(folder, { recursive: true, force: true })
})

/** The sizes of the sets of documents that were accepted. */
async function serve(documentsMax: number, busyTimes: number): Promise<{ url: string; accepted: number[] }> {
  const accepted: number[] = []
  let left = busyTimes
  const counts = () => ({ completed: accepted.reduce((a, b) => a + b, 0), failed: 0, in_progress: 0, total: 5 })
  const corpus = () => ({ id: 'vs', name: 'notes', file_counts: counts(), spillway: { passages: 5, embedded: 5 } })
  const server = createServer((req, res) => {
    let text = ''
    req.on('data', (part: Buffer) => {
      text += part.toString()
    })
    req.on('end', () => {
      const answer = (status: number, body: object, headers: Record<string, string> = {}): void => {
        res.writeHead(status, { 'content-type': 'application/json', ...headers })
        res.end(JSON.stringify(body))
      }
      if (!req.url?.endsWith('/documents')) {
        answer(
          200,
          req.method === 'GET' && req.url?.includes('limit') ? { data: [corpus()], has_more: false } : corpus(),
        )
      } else if (left > 0) {
        left--
        answer(429, { error: { message: 'over its limit' } }, { 'retry-after': '0' })
      } else {
        const { documents } = JSON.parse(text) as { documents: unknown[] }
        if (documents.length > documentsMax) answer(429, { error: { message: 'can never fit' } })
        else {
          accepted.push(documents.length)
          answer(200, { data: [] })
        }
      }
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, accepted }
}

const lines = join(folder, 'five.jsonl')
writeFileSync(
  lines,
  Array.from({ length: 5 }, (_, i) => JSON.stringify({ name: `d${i}`, text: `text ${i}` })).join('\n'),
)

async function add(url: string): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = []
  const err: string[] = []
  const io = { out: (text: string) => void out.push(text), err: (text: string) => void err.push(text) }
  const code = await runCli(['corpus', 'add', 'notes', '--from', lines, '--url', url, '--key', 'k'], io)
  return { code, out: out.join(''), err: err.join('') }
}

it('corpus add waits for an allowance that comes back, and sends less where more would never fit', async () => {
  const server = await serve(2, 3)
  expect(await add(server.url)).toMatchObject({ code: 0, out: '5 documents, 5 passages in notes' })
  expect(server.accepted.every((count) => count <= 2)).toBe(true)
  writeFileSync(lines, JSON.stringify({ name: 'one', text: 'never' }))
  const never = await serve(0, 0)
  const refused = await add(never.url)
  expect(refused.code).not.toBe(0)
  expect(refused.err).toContain('can never fit')
})
