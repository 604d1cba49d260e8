/**
 * Can the load client see what it is there to see? A meter that never shows a fault proves nothing, so before every run the
 * client is put before a server that tears streams in known ways.
 */
import assert from 'node:assert/strict'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClientResult, LoadClient } from './measure.ts'

const FRAMES = 4
const frame = (number: number): string => `data: {"choices":[{"delta":{"content":" @${number}:1@"}}]}\n\n`
const DONE = 'data: [DONE]\n\n'
const ORDER = [0, 1, 2, 3]

type Expected = Partial<Pick<ClientResult, 'ok' | 'bad' | 'errors' | 'lost' | 'disordered' | 'undone' | 'unopened'>>

interface Case {
  readonly name: string
  readonly pieces: readonly string[]
  readonly status?: number
  readonly isCut?: boolean
  readonly expected: Expected
}

const intact = ORDER.map(frame).join('') + DONE
const CASES: readonly Case[] = [
  { name: 'intact', pieces: [intact], expected: { ok: 1, lost: 0, disordered: 0, undone: 0 } },
  { name: 'torn into bytes', pieces: intact.split(''), expected: { ok: 1, lost: 0, disordered: 0, undone: 0 } },
  { name: 'a frame missing', pieces: [frame(0), frame(1), frame(3), DONE], expected: { lost: 1, disordered: 0 } },
  { name: 'two frames swapped', pieces: [0, 2, 1, 3].map(frame).concat(DONE), expected: { lost: 0, disordered: 1 } },
  { name: 'a frame twice', pieces: [0, 1, 1, 2, 3].map(frame).concat(DONE), expected: { lost: 0, disordered: 1 } },
  { name: 'no [DONE]', pieces: ORDER.map(frame), expected: { ok: 0, bad: 1, lost: 0, undone: 1 } },
  { name: 'cut', pieces: [frame(0)], isCut: true, expected: { errors: 1, lost: 3, undone: 1 } },
  { name: 'refused', pieces: ['{}'], status: 429, expected: { bad: 1, lost: 0, unopened: 1 } },
  { name: 'closed before any answer', pieces: [], isCut: true, expected: { errors: 1, lost: 0, unopened: 1 } },
]

async function answer(response: ServerResponse, test: Case): Promise<void> {
  if (test.pieces.length > 0) response.writeHead(test.status ?? 200, { 'content-type': 'text/event-stream' })
  for (const piece of test.pieces) response.write(piece)
  await sleep(5)
  if (test.isCut) response.destroy()
  else response.end()
}

export async function checkClient(client: LoadClient): Promise<void> {
  let current: Case | undefined
  const server = createServer((request, response) => {
    request.resume()
    if (current !== undefined) void answer(response, current)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = server.address() as AddressInfo
    for (current of CASES) {
      const args = ['-c', '1', '-n', '1', '-t', '5', '-s', '-k', String(FRAMES)]
      const result = await client.run({ port, headers: [] }, args)
      for (const [field, wanted] of Object.entries(current.expected))
        assert.equal(result[field as keyof Expected], wanted, `load client, stream "${current.name}": ${field}`)
    }
  } finally {
    server.closeAllConnections()
    server.close()
  }
}
