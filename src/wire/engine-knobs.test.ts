import { expect, it } from 'vitest'
import { mustEndWhole } from './engine-knobs.ts'

const messages = [{ role: 'user', content: 'Hello?' }]

it.each([
  ['a plain question', {}, false],
  ['no tools', { tools: [] }, false],
  ['tools', { tools: [{ type: 'function' }] }, true],
  ['plain text', { response_format: { type: 'text' } }, false],
  ['nothing said', { tools: null, response_format: null, guided_json: null }, false],
  ['JSON', { response_format: { type: 'json_object' } }, true],
  ['a schema', { response_format: { type: 'json_schema', json_schema: {} } }, true],
  ['a schema, as older vLLM takes it', { guided_json: {} }, true],
  ['a grammar, as newer vLLM takes it', { structured_outputs: { grammar: 'x' } }, true],
])('%s: an answer without its end is worth nothing: %j %s', (_what, more, isWhole) => {
  expect(mustEndWhole({ model: 'm', messages, ...more } as Parameters<typeof mustEndWhole>[0])).toBe(isWhole)
})

it('completions have a form only by vLLM’s fields', () => {
  const body = { model: 'm', prompt: 'Once', response_format: { type: 'json_object' } }
  expect(mustEndWhole(body)).toBe(false)
  expect(mustEndWhole({ ...body, guided_regex: 'a+' } as typeof body)).toBe(true)
})
