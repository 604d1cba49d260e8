import { describe, expect, it } from 'vitest'
import { anthropicChecked } from '../../test/support/anthropic-shapes.ts'
import { ANTHROPIC_ERRORS } from './anthropic-errors.ts'
import { ERROR_TABLE, type ErrorCode, statusOf } from './error-table.ts'

const CODES = Object.keys(ERROR_TABLE) as ErrorCode[]

describe("errors in Anthropic's words", () => {
  it('have its shape for every code, and a status of its own only where the platform is full', () => {
    for (const code of CODES)
      for (const blame of ['request', 'tenant', 'platform'] as const) {
        const refusal = { code, because: 'it is so', blame, retryAfterUs: 1_500_000, param: 'messages' }
        const { status, body, headers } = ANTHROPIC_ERRORS.ofRefusal(refusal, 'req_1')
        const told = anthropicChecked('error', JSON.parse(body))
        const usual = statusOf(refusal)
        expect(status).toBe(usual === 503 ? 529 : usual)
        expect(told).toMatchObject({
          request_id: 'req_1',
          error: { spillway: { code: code.replaceAll('-', '_'), param: 'messages', retry_after_ms: 1_500 } },
        })
        expect(headers).toEqual(['retry-after', '2', 'retry-after-ms', '1500'])
      }
  })

  it.each<[code: ErrorCode, status: number, type: string]>([
    ['invalid-json', 400, 'invalid_request_error'],
    ['invalid-api-key', 401, 'authentication_error'],
    ['key-not-allowed', 403, 'permission_error'],
    ['model-not-found', 404, 'not_found_error'],
    ['method-not-allowed', 405, 'invalid_request_error'],
    ['request-too-large', 413, 'request_too_large'],
    ['unsupported-content-type', 415, 'invalid_request_error'],
    ['rate-limit-tokens', 429, 'rate_limit_error'],
    ['internal-error', 500, 'api_error'],
    ['replica-lost', 502, 'api_error'],
    ['deadline-passed', 504, 'timeout_error'],
    ['content-filter', 400, 'invalid_request_error'],
    ['key-paused', 429, 'rate_limit_error'],
    ['queue-full', 529, 'overloaded_error'],
  ])('%s is %i %s, as a refusal and as a fault', (code, status, type) => {
    const refusal = { code, because: 'it is so', blame: 'platform' as const, retryAfterUs: undefined }
    for (const reply of [
      ANTHROPIC_ERRORS.ofRefusal(refusal, 'req_1'),
      ANTHROPIC_ERRORS.ofFault({ code, message: 'It is so.', param: null }, 'req_1'),
    ]) {
      expect(reply.status).toBe(status)
      expect(JSON.parse(reply.body)).toMatchObject({ error: { type } })
    }
  })

  it('name parameters as the client does', () => {
    const fault = { code: 'unsupported-parameter', message: "Invalid 'response_format': no.", param: 'response_format' }
    const { body } = ANTHROPIC_ERRORS.ofFault(fault as never, 'req_1')
    expect(JSON.parse(body)).toMatchObject({
      error: { message: "Invalid 'output_config.format': no.", spillway: { param: 'output_config.format' } },
    })
  })

  it('have no parameter and no code where a body is wrong as a whole', () => {
    const { status, body } = ANTHROPIC_ERRORS.ofFault({ code: null, message: 'Not an object.', param: null }, 'req_1')
    expect(status).toBe(400)
    expect(JSON.parse(body)).toMatchObject({ error: { spillway: {} } })
  })
})
