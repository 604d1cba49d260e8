import { expect, it } from 'vitest'
import { makeKey, makeTenant } from '../../test/support/demand.ts'
import type { Request } from '../domain/request.ts'
import type { Tenant } from '../domain/tenant.ts'
import { ModelDirectory } from './model-directory.ts'
import { toRequest } from './to-request.ts'

const features = { logprobs: false, tools: false, jsonSchema: false }
const model = {
  name: 'm',
  aliases: ['alias'],
  contextTokensMax: 1_000,
  outputTokensDefault: 100,
  fallback: undefined,
  createdAtS: 1,
  releases: ['m@1'],
}
const rules = {
  models: new ModelDirectory([{ model, features }]),
  choicesMax: 4,
  promptTokensMax: undefined,
  passagesDefault: 4,
  passagesMax: 20,
  salt: 'secret',
  estimateTokens: (text: string) => Math.ceil(text.length / 4),
}

function read(tenantId: string, content: string, headers: Record<string, string> = {}): Request {
  const tenant = makeTenant(tenantId, { bidMax: 5, bands: ['standard', 'offline'] })
  const caller = { tenant, key: makeKey('k', tenantId) }
  const body = { model: 'alias', messages: [{ role: 'user' as const, content }] }
  const result = toRequest({ id: 'r', kind: 'chat', body, headers, caller, now: 1_000 }, rules)
  if (result.kind !== 'ok') throw new Error(result.fault.message)
  return result.request
}

const STORY = 'A weir holds the water level and spills what it cannot hold. '.repeat(20)

it('names the leading blocks alike for one beginning, and differently for two tenants', () => {
  const one = read('a', `${STORY} And then?`).prefixHashes
  const other = read('a', `${STORY} What else is there to say about it, and by whom?`).prefixHashes
  const blocks = Math.floor(STORY.length / 64)
  expect(one.length).toBeGreaterThanOrEqual(blocks)
  expect(other.slice(0, blocks)).toEqual(one.slice(0, blocks))
  expect(read('b', `${STORY} And then?`).prefixHashes.filter((hash) => one.includes(hash))).toEqual([])
  expect(read('a', 'x'.repeat(1_000_000)).prefixHashes).toHaveLength(128)
})

it('names blocks alike for tenants that share a cache, and differently for salts of a client', () => {
  const named = (tenant: Partial<Tenant>, cache_salt?: string): readonly number[] => {
    const caller = { tenant: { ...makeTenant('a'), ...tenant }, key: makeKey('k', 'a') }
    const messages = [{ role: 'user' as const, content: STORY }]
    const body = { model: 'm', messages, ...(cache_salt !== undefined && { cache_salt }) }
    const result = toRequest({ id: 'r', kind: 'chat', body, headers: {}, caller, now: 1 }, rules)
    return result.kind === 'ok' ? result.request.prefixHashes : []
  }
  const org = { orgId: 'o', prefixCache: 'org' } as const
  expect(named({ ...org, id: 'b' })).toEqual(named({ ...org, id: 'a' }))
  expect(named({ id: 'b', prefixCache: 'shared' })).toEqual(named({ id: 'a', prefixCache: 'shared' }))
  const all = [{}, org, { prefixCache: 'shared' } as const].flatMap((tenant) => [named(tenant), named(tenant, 'mine')])
  expect(new Set(all.map(([first]) => first)).size).toBe(6)
})

it('clamps what a client wishes to what its tenant may have', () => {
  expect(read('a', 'hi', { 'x-spillway-bid': '99', 'x-spillway-band': 'interactive' })).toMatchObject({
    bid: 5,
    band: 'standard',
  })
  expect(read('a', 'hi', { 'x-spillway-band': 'offline', 'x-spillway-deadline-ms': '250' })).toMatchObject({
    band: 'offline',
    deadlineAt: 251_000,
  })
})

it('reads decimal numbers in headers, and takes anything else for no wish', () => {
  const deadline = (text: string) => read('a', 'hi', { 'x-spillway-deadline-ms': text }).deadlineAt
  expect([deadline('250'), deadline('2.5e2'), deadline('250.0')]).toEqual([251_000, 251_000, 251_000])
  const unasked = read('a', 'hi').deadlineAt
  for (const text of ['0x10', '0b1', '', ' ', '1 000', '1e', 'Infinity', '٣']) expect(deadline(text)).toBe(unasked)
})

it('takes a looser promise of the first token, and no tighter one than the tenant was sold', () => {
  const sold = makeTenant('a').slo.ttftUs
  for (const name of ['x-spillway-ttft-ms', 'x-slo-ttft-ms']) {
    expect(read('a', 'hi', { [name]: String(sold / 1_000 + 500) }).slo.ttftUs).toBe(sold + 500_000)
    expect(read('a', 'hi', { [name]: '1' }).slo.ttftUs).toBe(sold)
    expect(read('a', 'hi', { [name]: '-5' }).slo.ttftUs).toBe(sold)
  }
  // Everything else of the promise stays as it was sold.
  expect(read('a', 'hi', { 'x-spillway-ttft-ms': '60000' }).slo).toEqual({
    ...makeTenant('a').slo,
    ttftUs: 60_000_000,
  })
})

it('names blocks differently in every process, and sessions alike', () => {
  const asked = (salt: string) => {
    const caller = { tenant: makeTenant('a'), key: makeKey('k', 'a') }
    const body = { model: 'm', messages: [{ role: 'user' as const, content: STORY }], user: 'ann' }
    const result = toRequest({ id: 'r', kind: 'chat', body, headers: {}, caller, now: 1 }, { ...rules, salt })
    if (result.kind !== 'ok') throw new Error(result.fault.message)
    return result.request
  }
  const [one, other] = [asked('one'), asked('other')]
  expect(other.prefixHashes.filter((hash) => one.prefixHashes.includes(hash))).toEqual([])
  expect(other.sessionHash).toBe(one.sessionHash)
})

it('takes the most exact name of a session, and keeps tenants apart', () => {
  const session = (tenantId: string, headers: Record<string, string>, more: Record<string, string> = {}) => {
    const caller = { tenant: makeTenant(tenantId), key: makeKey('k', tenantId) }
    const body = { model: 'm', messages: [{ role: 'user' as const, content: 'hi' }], ...more }
    const result = toRequest({ id: 'r', kind: 'chat', body, headers, caller, now: 1 }, rules)
    return result.kind === 'ok' ? result.request.sessionHash : 'fault'
  }
  expect(session('a', {})).toBeUndefined()
  const s = session('a', { 'x-session-id': 's' }, { prompt_cache_key: 'p', safety_identifier: 'i', user: 'u' })
  const p = session('a', {}, { prompt_cache_key: 'p', safety_identifier: 'i', user: 'u' })
  const i = session('a', {}, { safety_identifier: 'i', user: 'u' })
  const u = session('a', {}, { user: 'u' })
  expect(new Set([s, p, i, u]).size).toBe(4)
  expect(session('a', { 'x-session-id': 's' })).toBe(s)
  expect(session('b', { 'x-session-id': 's' })).not.toBe(s)
})

it('ends a running answer at a deadline that the client set, unless it says otherwise', () => {
  const cutOff = (headers: Record<string, string>) => read('a', 'hi', headers).isCutOff ?? false
  expect(cutOff({})).toBe(false)
  expect(cutOff({ 'x-spillway-deadline-ms': '250' })).toBe(true)
  expect(cutOff({ 'x-spillway-deadline-ms': '250', 'x-spillway-cut-off': 'false' })).toBe(false)
  expect(cutOff({ 'x-spillway-cut-off': 'true' })).toBe(true)
})
