import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { UsageError } from './command.ts'
import { fetchStory } from './http-explain.ts'
import { askServer } from './http-server-client.ts'

const server = createServer((_, response) => {
  response.setHeader('content-type', 'text/html')
  response.end('<html>Welcome to another server</html>')
})

afterEach(() => new Promise<void>((closed) => void server.close(() => closed())))

const listening = (): Promise<string> =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  })

const ask = (url: string) => askServer({ url, key: 'k', method: 'GET', path: '/v1/vector_stores' })

it('another server at the address gives one clear line', async () => {
  const url = await listening()
  await expect(ask(url)).rejects.toThrow(`the server at ${url} is not Spillway (it answered 200). Give --url.`)
  await expect(fetchStory(url, 'k', 'req_1')).rejects.toThrow('the server answered 200: <html>')
})

it('so is nobody at all', async () => {
  const url = await listening()
  await new Promise<void>((closed) => void server.close(() => closed()))
  const refused = ask(url)
  await expect(refused).rejects.toThrow(UsageError)
  await expect(refused).rejects.toThrow(`no server answers at ${url}`)
})
