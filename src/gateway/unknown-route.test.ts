import { expect, it } from 'vitest'
import { nearestPath } from './unknown-route.ts'

const known = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/models',
  '/v1/models/*',
  '/v1/embeddings',
  '/health/ready',
  '/admin/v1/keys',
]

it.each([
  ['/chat/completions', '/v1/chat/completions'],
  ['/v1/v1/models', '/v1/models'],
  ['/openai/v1/chat/completions', '/v1/chat/completions'],
  ['/v1/engines/davinci/completions', '/v1/completions'],
  ['/v1/chat/completion', '/v1/chat/completions'],
  ['/Embeddings', '/v1/embeddings'],
  ['/v1/keys', undefined],
  ['/', undefined],
  ['/v1/audio/speech', undefined],
])('for %s the nearest path is %s', (path, nearest) => {
  expect(nearestPath(path, known, '')).toBe(nearest)
})

it('a base path is part of what is proposed, and private paths behind it stay private', () => {
  const based = known.map((path) => `/llm${path}`)
  expect(nearestPath('/v1/chat/completions', based, '/llm')).toBe('/llm/v1/chat/completions')
  expect(nearestPath('/keys', based, '/llm')).toBeUndefined()
})
