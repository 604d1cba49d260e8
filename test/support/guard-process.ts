import { createServer } from 'node:http'

/**
 * A guard model as a process of its own, so that a test can kill and stop it: `node guard-process.ts PORT DELAY_MS`. It
 * calls a text unsafe that has the word WEIRDO in it, and knows both routes.
 */
const [port = '0', delayMs = '5'] = process.argv.slice(2)

const server = createServer((req, res) => {
  if (req.method === 'GET') {
    res.writeHead(200, { 'content-type': 'application/json' }).end('{"object":"list","data":[]}')
    return
  }
  let text = ''
  req.setEncoding('utf8').on('data', (piece: string) => {
    text += piece
  })
  req.on('end', () => {
    const isUnsafe = text.includes('WEIRDO')
    const body = req.url?.endsWith('/moderations') === true ? results(isUnsafe) : completion(isUnsafe)
    setTimeout(
      () => res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body)),
      Number(delayMs),
    )
  })
})

const results = (flagged: boolean) => ({
  id: 'm',
  model: 'guard',
  results: [{ flagged, categories: { illicit: flagged } }],
})

const completion = (isUnsafe: boolean) => ({
  id: 'g',
  object: 'chat.completion',
  created: 1,
  model: 'guard',
  choices: [
    { index: 0, message: { role: 'assistant', content: isUnsafe ? 'unsafe\nS14' : 'safe' }, finish_reason: 'stop' },
  ],
  usage: { prompt_tokens: 200, completion_tokens: 2, total_tokens: 202 },
})

server.listen(Number(port), '127.0.0.1', () => {
  const address = server.address()
  process.stdout.write(`listening on ${typeof address === 'object' ? address?.port : ''}\n`)
})
