import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../test/support/eventually.ts'
import { BODY_BYTES_MAX, closeAll, exchangeOf, startFastPath, textOf } from '../../test/support/fast-path-server.ts'

afterEach(closeAll)

/** After a head that was wrong, Node's next status line still has the reason of the first. */
const withoutDate = (received: string): string =>
  received.replaceAll(/^Date: .*$/gm, 'Date: …').replace('HTTP/1.1 500 OK', 'HTTP/1.1 500 Internal Server Error')

describe('the fast path sends the bytes that node:http sends', () => {
  const asked: ReadonlyArray<readonly [what: string, text: string]> = [
    ['a whole answer', textOf('/json', '{"a":1}')],
    ['text that is no ASCII', textOf('/json', '{"a":"ü"}')],
    ['an answer to a body that was not read', textOf('/unread', '{}')],
    ['an empty body', textOf('/json', '')],
    ['a stream', textOf('/stream', '{}')],
    ['a stream in one turn', textOf('/stream-at-once', '{}')],
    ['bytes', textOf('/bytes', '{}')],
    ['a declared length and a date', textOf('/declared', '{}')],
    ['204', textOf('/nothing', '{}')],
    ['304', textOf('/not-modified', '{}')],
    ['a head that leaves first', textOf('/flushed', '{}')],
    ['a route that throws', textOf('/broken', '{}')],
    ['a header with a line break', textOf('/split', '{}')],
    ['a header with an odd name', textOf('/odd-name', '{}')],
    ['a body that is read as a stream', textOf('/streamed-body', '{"a":1}')],
    ['an empty body that is read as a stream', textOf('/streamed-body', '')],
    ['no route', textOf('/nowhere', '{}')],
    ['no such path of an Ollama client', textOf('/api/chat', '{}')],
    ['U+0000 in the address', textOf('/json?%00', '{}')],
    ['another type', textOf('/json', '{}', { 'content-type': 'text/plain' })],
    ['an encoding', textOf('/json', '{}', { 'content-encoding': 'gzip' })],
    ['a body that is too large', textOf('/json', 'x'.repeat(BODY_BYTES_MAX + 1))],
    ['JSON that is too deep', textOf('/json', '['.repeat(BODY_BYTES_MAX))],
    ['a page of another origin', textOf('/json', '{}', { origin: 'https://app.example' })],
    ['a page that may not call', textOf('/json', '{}', { origin: 'https://evil.example' })],
  ]
  /** A second request shows that the connection goes on; the third, which is Node's, that it can be handed over. */
  async function transcript(fastPath: boolean, text: string): Promise<{ received: string; byFastPath: boolean[] }> {
    const { seen, connect } = await startFastPath(fastPath)
    const socket = connect().send(text)
    await socket.until('the head of an answer', (received) => received.includes('\r\n\r\n'))
    await eventually('the answer is through', () => seen.exchange?.res.writableFinished !== false)
    socket.send(textOf('/json', '{"second":true}'))
    await socket.until('the second answer', (received) => received.includes('{"second":true}'))
    await eventually('the second answer is through', () => exchangeOf(seen).res.writableFinished)
    socket.send(textOf('/json', '{"third":true}', { connection: 'close' }))
    await socket.closed()
    return { received: withoutDate(socket.received), byFastPath: seen.byFastPath }
  }
  it.each(asked)('%s', async (_what, text) => {
    const [path, node] = [await transcript(true, text), await transcript(false, text)]
    expect(path.received).toBe(node.received)
    expect(node.byFastPath).not.toContain(true)
    expect(path.byFastPath.slice(-2)).toEqual([true, false])
    expect(path.byFastPath.slice(0, -1)).not.toContain(false)
  })

  it('also where the connection closes, because much of the body is not wanted', async () => {
    const text = textOf('/nowhere?%00', 'x'.repeat(65_000 + 1_000))
    const seen: string[] = []
    for (const fastPath of [true, false]) {
      const socket = (await startFastPath(fastPath)).connect().send(text)
      await socket.closed()
      seen.push(withoutDate(socket.received))
    }
    expect(seen[0]).toMatch(/Connection: close/)
    expect(seen[0]).toBe(seen[1])
  })
})
