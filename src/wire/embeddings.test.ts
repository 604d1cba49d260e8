import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkEmbedding, embeddingAnswer, INPUTS_MAX, readVectors } from './embeddings.ts'

const usage = { promptTokens: 3, cachedTokens: 0, outputTokens: 0 }

it('reads the vectors that it writes, as numbers and as base64', () => {
  const vectors = fc.array(fc.float32Array({ minLength: 1, maxLength: 9, noNaN: true, noDefaultInfinity: true }), {
    minLength: 1,
    maxLength: 5,
  })
  fc.assert(
    fc.property(vectors, fc.boolean(), (given, isBase64) => {
      // JSON has no negative zero.
      const plain = given.map((vector) => vector.map((part) => part + 0))
      const text = embeddingAnswer({ model: 'm', vectors: plain, usage, isBase64 })
      expect(readVectors(JSON.parse(text))).toEqual(plain)
    }),
  )
})

describe('an engine’s answer', () => {
  it('is put in order by its indices', () => {
    const data = [
      { index: 1, embedding: [1] },
      { index: 0, embedding: [0] },
    ]
    expect(readVectors({ data })).toEqual([Float32Array.of(0), Float32Array.of(1)])
    expect(readVectors({ data: [{ embedding: [2] }, { embedding: [3] }] })).toEqual([
      Float32Array.of(2),
      Float32Array.of(3),
    ])
  })

  it.each([
    [undefined],
    [{}],
    [{ data: [] }],
    [{ data: [null] }],
    [{ data: [{ index: 0, embedding: 'AAAA' }] }],
    [{ data: [{ index: 0, embedding: ['1'] }] }],
    [{ data: [{ index: 7, embedding: [1] }] }],
    [
      {
        data: [
          { index: 0, embedding: [1] },
          { index: 0, embedding: [2] },
        ],
      },
    ],
  ])('that is none is not taken for one: %j', (json) => {
    expect(readVectors(json)).toBeUndefined()
  })
})

describe('a question', () => {
  const paramOf = (body: object): string | null | undefined => {
    const checked = checkEmbedding({ model: 'm', ...body })
    return checked.kind === 'fault' ? checked.fault.param : undefined
  }
  it.each([['text'], [['a', 'b']], [[1, 2]], [[[1], [2, 3]]]])('may be %j', (input) => {
    expect(paramOf({ input })).toBeUndefined()
  })
  it.each([
    [{}, 'input'],
    [{ input: '' }, 'input'],
    [{ input: ['a', ''] }, 'input[1]'],
    [{ input: [] }, 'input'],
    [{ input: [[]] }, 'input[0]'],
    [{ input: [-1] }, 'input[0]'],
    [{ input: Array.from({ length: INPUTS_MAX + 1 }, () => 'x') }, 'input'],
    [{ input: 'x', dimensions: 0 }, 'dimensions'],
    [{ input: 'x', encoding_format: 'hex' }, 'encoding_format'],
  ])('that is wrong names its parameter: %#', (body, param) => {
    expect(paramOf(body)).toBe(param)
  })
})
