import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { anthropicChecked } from '../support/anthropic-shapes.ts'
import { MODEL, postJson, startPlatform, type TestPlatform } from '../support/start-platform.ts'

/** Malformed bodies over HTTP: each is an answer or a 4xx in Anthropic's shape. */
let platform: TestPlatform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const right = {
  model: MODEL,
  max_tokens: 1,
  system: [{ type: 'text', text: 'Be brief.' }],
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'Hello?' }] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'ok' }] }] },
  ],
  tools: [{ name: 'f', input_schema: { type: 'object' } }],
  tool_choice: { type: 'auto' },
}

type Place = ReadonlyArray<string | number>

function placesIn(value: unknown, at: Place = []): Place[] {
  if (typeof value !== 'object' || value === null) return [at]
  return [at, ...Object.entries(value).flatMap(([key, inner]) => placesIn(inner, [...at, key]))]
}

function withValue(value: unknown, [key, ...rest]: Place, put: unknown): unknown {
  if (key === undefined) return put
  const copy = structuredClone(value) as Record<string, unknown>
  if (put === undefined && rest.length === 0) delete copy[key]
  else copy[key] = withValue(copy[key], rest, put)
  return copy
}

const places = placesIn(right)
const mutated = fc
  .tuple(fc.constantFrom(...places), fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constant(undefined)))
  .map(([place, put]) => withValue(right, place, put))
const garbled = fc.tuple(fc.nat(), fc.string({ maxLength: 3 })).map(([at, put]) => {
  const text = JSON.stringify(right)
  return text.slice(0, at % text.length) + put + text.slice((at % text.length) + 1)
})

describe('a body that is wrong somewhere', () => {
  it('is answered, or refused in words', { timeout: 60_000 }, async () => {
    let refused = 0
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom('messages', 'messages/count_tokens'),
        fc.oneof(
          mutated.map((body) => JSON.stringify(body) ?? ''),
          garbled,
        ),
        async (path, body) => {
          const answer = await postJson(`${platform.baseURL}/${path}`, body)
          const said = await answer.text()
          if (answer.ok) return
          refused++
          expect(answer.status).toBeGreaterThanOrEqual(400)
          expect(answer.status).toBeLessThan(500)
          anthropicChecked('error', JSON.parse(said))
          expect(answer.headers.get('request-id')).toBe(answer.headers.get('x-request-id'))
        },
      ),
      { numRuns: 200 },
    )
    expect(refused).toBeGreaterThan(20)
  })
})
