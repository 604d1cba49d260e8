import { afterEach, expect, it, vi } from 'vitest'
import { missing } from './support/installed.ts'

/** A suite whose program is missing is skipped with a reason on a person's machine, and fails in CI. */
afterEach(() => vi.unstubAllEnvs())

it.runIf(process.platform === 'linux')('a missing program is a reason to skip, and in CI a failure', () => {
  vi.stubEnv('NODE_LLAMA_CPP_FOLDER', '/no/such/folder')
  vi.stubEnv('CI', '')
  expect(missing('llama.cpp')).toMatch(/^llama\.cpp is not installed \(/)
  vi.stubEnv('CI', '1')
  expect(() => missing('llama.cpp')).toThrow(/CI must have .* llama\.cpp is not installed/)
})
