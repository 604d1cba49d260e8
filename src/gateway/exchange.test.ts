import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { OPENAI_ERRORS } from './error-words.ts'
import { Exchange } from './exchange.ts'

/** What one request is answered by `answer`. */
async function answerOf(answer: (exchange: Exchange) => void): Promise<{ status: number; body: string }> {
  const server = createServer((req: IncomingMessage, res: ServerResponse) => {
    answer(new Exchange(req, res, 'req_1', OPENAI_ERRORS))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    return { status: response.status, body: await response.text() }
  } finally {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
}

describe('a whole answer', () => {
  it('goes out when this turn has done its work, and then says so', async () => {
    const seen: unknown[] = []
    const { status, body } = await answerOf((exchange) => {
      exchange.sendAnswer('{"text":"ä"}', ['x-spillway-model', 'm'], () =>
        seen.push('sent', exchange.res.writableEnded),
      )
      seen.push('asked', exchange.res.writableEnded)
    })
    expect({ status, body }).toEqual({ status: 200, body: '{"text":"ä"}' })
    expect(seen).toEqual(['asked', false, 'sent', true])
  })

  it('is the only one: what is sent after it is not', async () => {
    const { status, body } = await answerOf((exchange) => {
      exchange.sendAnswer('{"first":true}', [], () => {})
      exchange.sendAnswer('{"second":true}', [], () => {})
      exchange.sendJson(500, '{"third":true}')
    })
    expect({ status, body }).toEqual({ status: 200, body: '{"first":true}' })
  })

  it('with a header that HTTP forbids fails at once, where its route can still answer', async () => {
    const { status } = await answerOf((exchange) => {
      expect(() => exchange.sendAnswer('{}', ['x-spillway-model', 'a\nb'], () => {})).toThrow('Invalid character')
      exchange.sendJson(500, '{}')
    })
    expect(status).toBe(500)
  })
})
