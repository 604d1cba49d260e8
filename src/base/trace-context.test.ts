import { describe, expect, it } from 'vitest'
import { readTraceparent, spanIdOf, traceIdOf, traceparentOf } from './trace-context.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

describe('traceparent', () => {
  it('is read as the specification says', () => {
    expect(readTraceparent(`00-${TRACE}-${SPAN}-01`)).toEqual({ traceId: TRACE, parentId: SPAN, isSampled: true })
    expect(readTraceparent(`00-${TRACE}-${SPAN}-02`)?.isSampled).toBe(false)
    // A later version may have more, which is left alone.
    expect(readTraceparent(`cc-${TRACE}-${SPAN}-01-what-comes`)?.traceId).toBe(TRACE)
  })

  it.each([
    '',
    'x',
    `00-${TRACE}-${SPAN}`,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  ])('is left alone when it is not one: %j', (header) => expect(readTraceparent(header)).toBeUndefined())

  it('goes on with a span of its own for each attempt', () => {
    const trace = { traceId: TRACE, parentId: SPAN, isSampled: true }
    const first = traceparentOf('req_1', 1, trace)
    expect(readTraceparent(first)).toEqual({ ...trace, parentId: spanIdOf('req_1', 'attempt 1') })
    expect(traceparentOf('req_1', 2, trace)).not.toBe(first)
    expect(readTraceparent(traceparentOf('req_1', 1, undefined))).toMatchObject({
      traceId: traceIdOf('req_1'),
      isSampled: false,
    })
  })
})
