import { describe, expect, it } from 'vitest'
import type { Plan } from '../domain/plan.ts'
import type { NativeDialect, Request } from '../domain/request.ts'
import { nativeBody } from './native-body.ts'

const SEGMENT = { role: 'user', tokens: 3 } as const

const sent = (dialect: NativeDialect, raw: string, plan: Partial<Plan> = {}, more: Partial<Request> = {}) => {
  const request = { segments: [SEGMENT], text: { body: {}, native: { dialect, raw } }, ...more } as unknown as Request
  return nativeBody(request, { keptSegments: [0], outputTokensMax: 100, ...plan } as Plan, 'engine-model')
}

describe('the body for an engine that speaks the dialect', () => {
  it.each([
    ['keeps digits and unknown members', '{"model":"a","input":"Hi","x":1.0,"y":12345678901234567890}', {}],
    ['has a bound only where the plan has one', '{"model":"a","input":"Hi"}', { sentTokensMax: undefined }],
  ] as const)('%s', (_, raw, plan) => {
    const kept = raw.slice(0, -1).replace('"a"', '"engine-model"')
    expect(sent('responses', raw, plan as Partial<Plan>)).toBe(`${kept},"store":false}`)
  })

  it.each([
    ['{"model":"a","max_tokens":80.0}', {}, '{"model":"engine-model","max_tokens":80.0}'],
    ['{"model":"a","max_tokens":800}', {}, '{"model":"engine-model","max_tokens":100}'],
    ['{"model":"a"}', { sentTokensMax: 40 }, '{"model":"engine-model","max_tokens":40}'],
    ['{"model":"a","priority":1,"spillway":{},"max_tokens":1}', {}, '{"model":"engine-model","max_tokens":1}'],
  ])('%s is bounded by the plan', (raw, plan, body) => {
    expect(sent('messages', raw, plan)).toBe(body)
  })

  it.each([
    ['"x-anthropic-billing-header: a=1\\nBe brief."', '"Be brief."'],
    [
      '[{"type":"text","text":"x-anthropic-billing-header: a=1"},{"type":"text","text":"B"}]',
      '[{"type":"text","text":"B"}]',
    ],
    ['[ {"type":"text", "text":"B"} ]', '[ {"type":"text", "text":"B"} ]'],
    ['null', 'null'],
  ])('the system prompt %s has no line for billing', (system, left) => {
    expect(sent('messages', `{"model":"a","system":${system}}`)).toBe(`{"model":"engine-model","system":${left}}`)
  })

  it('is none where the plan trims or adds, and where a member stands twice', () => {
    const raw = '{"model":"a","input":"Hi"}'
    expect(sent('responses', raw, { keptSegments: [] })).toBeUndefined()
    expect(sent('responses', raw, {}, { retrieval: { corpus: 'c', passagesMax: 1, query: 'Hi' } })).toBeUndefined()
    expect(sent('responses', '{"model":"a","model":"b"}')).toBeUndefined()
  })
})
