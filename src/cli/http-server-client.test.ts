import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, it, vi } from 'vitest'
import { buildConfig } from '../config/load.ts'
import { UsageError } from './command.ts'
import { fetchStory } from './http-explain.ts'
import { askServer, configuredUrl, serverUrlOf } from './http-server-client.ts'
import { runCli } from './run-cli.ts'

let askedCount = 0
const server = createServer((_, response) => {
  askedCount++
  response.setHeader('content-type', 'text/html')
  response.end('<html>Welcome to another server</html>')
})

afterEach(() => vi.unstubAllEnvs())
afterEach(() => new Promise<void>((closed) => void server.close(() => closed())))

const listening = (): Promise<string> =>
  new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
  })

const ask = (url: string) => askServer({ url, key: 'k', method: 'GET', path: '/v1/vector_stores' })

it('another server at the address gives one clear line', async () => {
  const url = await listening()
  await expect(ask(url)).rejects.toThrow(`the server at ${url} is not Spillway (it answered 200). Give --url.`)
  await expect(fetchStory({ url, key: 'k' }, 'req_1')).rejects.toThrow(`the server at ${url} is not Spillway`)
})

it('so is nobody at all', async () => {
  const url = await listening()
  await new Promise<void>((closed) => void server.close(() => closed()))
  const refused = ask(url)
  await expect(refused).rejects.toThrow(UsageError)
  await expect(refused).rejects.toThrow(`no server answers at ${url}`)
})

it.each([
  ['explain', 'req_1'],
  ['bench', 'baseline'],
  ['models', 'list'],
  ['corpus', 'list'],
])('%s %s asks the server at PORT', async (...words) => {
  const url = await listening()
  vi.stubEnv('PORT', new URL(url).port)
  const askedBefore = askedCount
  expect(await runCli(words, { out: () => {}, err: () => {} })).not.toBe(0)
  expect(askedCount).toBeGreaterThan(askedBefore)
})

it('the address is --url, which needs no configuration, or the configured one', () => {
  vi.stubEnv('SPILLWAY_CONFIG', 'no/such.yaml')
  expect(serverUrlOf({ url: 'http://gpu-1:8000/' })).toBe('http://gpu-1:8000')
  expect(() => serverUrlOf({})).toThrow('no/such.yaml')
  const at = (env: Record<string, string>) => configuredUrl(buildConfig(undefined, env))
  expect(at({})).toBe('http://127.0.0.1:8080')
  expect(at({ PORT: '9000' })).toBe('http://127.0.0.1:9000')
  expect(at({ HOST: '0.0.0.0' })).toBe('http://127.0.0.1:8080')
  expect(at({ HOST: '::' })).toBe('http://[::1]:8080')
})
