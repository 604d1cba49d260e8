import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { answers, FakeUpstream } from '../support/fake-upstream.ts'
import { RawSocket } from '../support/raw-http.ts'
import { authorization, MODEL, startPlatform, type TestPlatform, upstreamTree } from '../support/start-platform.ts'

/** A client cannot tell whether the fast path or `node:http` has read its request: the same answer, byte by byte. */
const messages = [{ role: 'user', content: 'Hello, Jürgen?' }]
const chat = { model: MODEL, messages, max_tokens: 5 }

let upstream: FakeUpstream
const platforms: TestPlatform[] = []
beforeAll(async () => {
  upstream = await FakeUpstream.start(answers())
  for (const fastPath of [true, false]) {
    const server = { port: 0, fastPath, bodyBytesMax: 20_000, cors: { origins: ['*'] } }
    platforms.push(await startPlatform(upstreamTree([upstream.url], { server })))
  }
})
afterAll(async () => {
  for (const platform of platforms) await platform.close()
  await upstream.close()
})

/** Whether the answer in front has arrived. */
function isWhole(received: string): boolean {
  const end = received.indexOf('\r\n\r\n')
  const length = /\r\ncontent-length: (\d+)\r\n/i.exec(received.slice(0, end + 2))?.[1]
  if (end < 0) return false
  return length === undefined
    ? received.endsWith('\r\n0\r\n\r\n')
    : Buffer.byteLength(received.slice(end + 4)) >= Number(length)
}

/** What differs between any two answers. Chunks end where turns of the event loop end, so their borders do, too. */
const comparable = (received: string): string =>
  received
    .replaceAll(/^Date: .*$/gm, 'Date: …')
    .replaceAll(/\b(req|chatcmpl|cmpl|resp|msg|embd)[_-][\w-]+/g, '$1_…')
    .replaceAll(/"(created|created_at|completed_at)":\s*[\d.]+/g, '"$1":…')
    .replaceAll(/\r\n[0-9a-f]+\r\n(?=data|event|\r\n)/g, '')
    .replaceAll(/(reset-tokens|reset-requests|remaining-tokens): .*$/gm, '$1: …')

interface Asked {
  readonly status: number
  readonly path: string
  readonly body: unknown
  readonly headers?: Record<string, string>
}

const ASKED: Readonly<Record<string, Asked>> = {
  'a whole answer': { status: 200, path: '/v1/chat/completions', body: chat },
  'a stream': {
    status: 200,
    path: '/v1/chat/completions',
    body: { ...chat, stream: true, stream_options: { include_usage: true } },
  },
  'a completion': { status: 200, path: '/v1/completions', body: { model: MODEL, prompt: 'Hello', max_tokens: 3 } },
  'a response': { status: 200, path: '/v1/responses', body: { model: MODEL, input: 'Hello', store: false } },
  'a message': { status: 200, path: '/v1/messages', body: chat, headers: { 'anthropic-version': '2023-06-01' } },
  'a message, streamed': { status: 200, path: '/v1/messages', body: { ...chat, stream: true } },
  'an address with a query': { status: 200, path: '/v1/chat/completions?api-version=1', body: chat },
  'a page of another origin': {
    status: 200,
    path: '/v1/chat/completions',
    body: chat,
    headers: { origin: 'https://app.example' },
  },
  'no key': { status: 401, path: '/v1/chat/completions', body: chat, headers: { authorization: 'none' } },
  'a wrong key': {
    status: 401,
    path: '/v1/chat/completions',
    body: chat,
    headers: { authorization: 'Bearer sk-wrong' },
  },
  'no such model': { status: 404, path: '/v1/chat/completions', body: { ...chat, model: 'none' } },
  'a wrong parameter': { status: 400, path: '/v1/chat/completions', body: { ...chat, temperature: 'warm' } },
  'a wrong parameter of a message': { status: 400, path: '/v1/messages', body: { ...chat, messages: 7 } },
  'a body that is no object': { status: 400, path: '/v1/chat/completions', body: [] },
  'a body that is too large': { status: 413, path: '/v1/chat/completions', body: 'x'.repeat(20_000) },
  'another type': { status: 415, path: '/v1/chat/completions', body: chat, headers: { 'content-type': 'text/plain' } },
  'no such path': { status: 404, path: '/chat/completions', body: chat },
  'no such method': { status: 405, path: '/v1/models', body: chat },
  'the administration': { status: 403, path: '/admin/v1/reload', body: {} },
}

describe('the same answer by the fast path and by node:http', () => {
  it.each(Object.entries(ASKED))('%s', async (_what, { status, path, body, headers }) => {
    const received: string[] = []
    for (const { address } of platforms) {
      const socket = new RawSocket(address).post(path, body, { ...authorization(), ...headers })
      await socket.until('the answer', isWhole)
      socket.destroy()
      received.push(comparable(socket.received))
    }
    expect(received[0]).toMatch(/\r\nKeep-Alive: timeout=\d+\r\n/)
    expect(received[0]?.startsWith(`HTTP/1.1 ${status} `)).toBe(true)
    expect(received[0]).toBe(received[1])
  })
})
