import type { IncomingMessage, ServerResponse } from 'node:http'
import { expect, it } from 'vitest'
import { Cors } from './cors.ts'

function admit(cors: Cors, origin: string | undefined, path = '/v1/models'): Record<string, unknown> & { is: boolean } {
  const set: Record<string, unknown> = {}
  const setHeader = (name: string, value: unknown): void => {
    set[name] = value
  }
  const res = { setHeader } as unknown as ServerResponse
  const is = cors.admit({ headers: { origin } } as unknown as IncomingMessage, res, path)
  return { ...set, is }
}

const one = new Cors({ origins: ['https://app.example'], headers: ['authorization'] }, '/llm')
const all = new Cors({ origins: ['*'], headers: ['*'] }, '')

it('a named origin may read the answer and our headers; any other may not; caches are told that it depends', () => {
  const admitted = admit(one, 'https://app.example', '/llm/v1/models')
  expect(admitted).toMatchObject({ is: true, vary: 'origin', 'access-control-allow-origin': 'https://app.example' })
  for (const name of [
    'x-request-id',
    'retry-after',
    'x-ratelimit-remaining-tokens',
    'x-spillway-rung',
    'x-spillway-not-stored',
  ])
    expect(String(admitted['access-control-expose-headers']).split(', ')).toContain(name)
  for (const origin of ['https://app.example.evil', 'http://app.example', 'null', undefined])
    expect(admit(one, origin, '/llm/v1/models')).toEqual({ is: false, vary: 'origin' })
})

it('with * every origin may, and no answer depends on the origin', () => {
  expect(admit(all, 'https://any.example')).toMatchObject({ is: true, 'access-control-allow-origin': '*' })
  expect(admit(all, 'https://any.example')).not.toHaveProperty('vary')
})

it.each(['/admin/v1/tenants', '/admin', '/metrics', '/console', '/console/app.js', '/internal/retrieve'])(
  'no page may call %s',
  (path) => {
    expect(admit(all, 'https://any.example', path)).toEqual({ is: false })
    expect(admit(one, 'https://app.example', `/llm${path}`)).toEqual({ is: false })
  },
)

it('a preflight gets the methods and the headers, as set or as asked', () => {
  const ask = (cors: Cors, asked?: string, method = 'OPTIONS') =>
    cors.preflight(
      {
        method,
        headers: { 'access-control-request-method': 'POST', 'access-control-request-headers': asked },
      } as unknown as IncomingMessage,
      ['POST'],
    )
  const listed = (headers: string) =>
    `access-control-allow-methods POST access-control-allow-headers ${headers} access-control-max-age 7200`.split(' ')
  expect(ask(one, 'x-stainless-os')).toEqual(listed('authorization'))
  expect(ask(all, 'authorization,x-stainless-os')).toEqual(listed('authorization,x-stainless-os'))
  expect(ask(all)).toEqual(listed('*'))
  expect(ask(all, 'x\r\nset-cookie: a')).toEqual(listed('*'))
  expect(ask(all, 'authorization', 'POST')).toBeUndefined()
})
