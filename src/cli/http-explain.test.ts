import { expect, it } from 'vitest'
import { settled } from '../../test/support/entries.ts'
import { tellStory } from './http-explain.ts'

it('tells the GPU memory of a request, where it is known', () => {
  const told = tellStory({ id: 'req_1', entries: [settled({ kvBytes: 1.5 * 2 ** 20 })] })
  expect(told).toContain('output tokens, 1.5 MiB of GPU memory at its end')
  expect(tellStory({ id: 'req_1', entries: [settled()] })).not.toContain('GPU memory')
})
