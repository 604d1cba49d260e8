import fc from 'fast-check'
import { ResponseStream } from 'openai/lib/responses/ResponseStream'
import { describe, expect, it } from 'vitest'
import { ends, streamed, whole } from '../../test/support/responses-answers.ts'
import { accumulated } from '../../test/support/responses-shapes.ts'
import type { ChoiceDelta } from '../domain/delta.ts'

describe('any answer', () => {
  const word = fc.string({ unit: 'binary', maxLength: 6 })
  const call = fc.record(
    {
      index: fc.nat(2),
      id: fc.constantFrom('a', 'b', ''),
      function: fc.record({ name: fc.constantFrom('f', 'g'), arguments: word }, { requiredKeys: [] }),
      custom: fc.record({ name: fc.constantFrom('f'), input: word }),
    },
    { requiredKeys: [] },
  )
  const extra = fc.record(
    {
      reasoning_content: word,
      reasoning: word,
      refusal: word,
      tool_calls: fc.array(call, { maxLength: 3 }),
      function_call: fc.record({ name: fc.constant('h'), arguments: word }),
      annotations: fc.jsonValue(),
    },
    { requiredKeys: [] },
  )
  const delta = fc.record(
    {
      index: fc.constantFrom(0, 0, 0, 1),
      content: fc.option(word),
      finishReason: fc.constant(null),
      extra,
      logprobs: fc.jsonValue(),
    },
    { requiredKeys: ['index', 'content', 'finishReason'] },
  ) as fc.Arbitrary<ChoiceDelta>
  const asked = fc.record(
    { reasoning: fc.constant({ summary: 'auto' }), top_logprobs: fc.constant(2) },
    { requiredKeys: [] },
  )

  /** Whatever JSON stands where a list, a text or a number should. */
  const odd = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom('', 0, -1, 0.5, 1e300, null, [], {}))
  const oddCall = fc.oneof(
    odd,
    fc.record({ index: odd, id: odd, function: fc.oneof(odd, fc.record({ name: odd, arguments: odd })) }),
  )
  const oddDelta = fc.record({
    index: fc.constant(0),
    content: fc.option(word),
    finishReason: fc.constant(null),
    extra: fc.record({
      reasoning: odd,
      refusal: odd,
      tool_calls: fc.oneof(odd, fc.array(oddCall, { maxLength: 3 })),
      function_call: odd,
    }),
    logprobs: fc.oneof(odd, fc.record({ content: fc.oneof(odd, fc.array(odd)) })),
  }) as fc.Arbitrary<ChoiceDelta>

  it('of an engine that says anything has the shapes of the API, and is the same in both forms', () => {
    fc.assert(
      fc.property(fc.array(oddDelta, { maxLength: 6 }), (deltas) => {
        const all = [...deltas.map((one) => [one]), ends()]
        expect(streamed(all, { top_logprobs: 1 }).last).toEqual(whole(all, { top_logprobs: 1 }))
      }),
      { numRuns: 150 },
    )
  })

  it('is read by the official client, item by item', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(delta, { maxLength: 8 }), asked, async (deltas, more) => {
        const { events, last } = streamed([...deltas.map((one) => [one]), ends()], more)
        const lines = events.map((event) => `${JSON.stringify(event)}\n`).join('')
        const { output } = await ResponseStream.fromReadableStream(new Blob([lines]).stream()).finalResponse()
        expect(output.map(({ id }) => id)).toEqual(last.output.map(({ id }) => id))
      }),
      { numRuns: 50 },
    )
  })

  it('is the same whether it is streamed or whole, to a client that reads deltas and to one that reads the end', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(delta, { maxLength: 2 }), { maxLength: 12 }),
        fc.constantFrom('stop', 'length', 'tool_calls'),
        asked,
        (deltas, finishReason, more) => {
          const all = [...deltas, ends(finishReason)]
          const { events, last } = streamed(all, more)
          expect(last).toEqual(whole(all, more))
          const withoutStatus = (items: readonly object[]): object[] => items.map((one) => ({ ...one, status: '' }))
          const grown = accumulated(events)
          for (const [nth, one] of last.output.entries())
            if (grown[nth]?.name === '') grown[nth].name = one.name as string
          expect(withoutStatus(grown)).toEqual(withoutStatus(last.output))
          const done = events.filter(({ type }) => type === 'response.output_item.done')
          expect(
            done
              .map(({ item }) => item)
              .sort(
                (a, b) =>
                  last.output.findIndex(({ id }) => id === a?.id) - last.output.findIndex(({ id }) => id === b?.id),
              ),
          ).toEqual(last.output)
        },
      ),
      { numRuns: 120 },
    )
  })
})
