import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { readEnvFile } from './fs-env-file.ts'

const folder = mkdtempSync(join(tmpdir(), 'spillway-env-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function written(text: string): string {
  const path = join(folder, '.env')
  writeFileSync(path, text)
  return path
}

describe('a .env file', () => {
  it('is optional', () => expect(readEnvFile(join(folder, 'none'))).toEqual({}))

  it('sets variables, with or without quotes, and leaves comments out', () => {
    const text = '# a comment\nMAX_QUEUE_SIZE=20\nCACHE_TTL_S="5"\n# PORT=1\n'
    expect(readEnvFile(written(text))).toEqual({ MAX_QUEUE_SIZE: '20', CACHE_TTL_S: '5' })
  })

  it('can be a copy of .env.example: nothing is set until a line is uncommented', () => {
    const example = readFileSync(new URL('../../.env.example', import.meta.url), 'utf8')
    expect(readEnvFile(written(example))).toEqual({})
    const uncommented = example.replace(/^# ([A-Z][A-Z0-9_]*=)/gm, '$1')
    const read = readEnvFile(written(uncommented))
    expect(read).toMatchObject({ MAX_QUEUE_SIZE: '10000', RETRIEVAL_BUDGET_MS: '150', BATCH_TIMEOUT_MS: '5' })
    expect(Object.keys(read).length).toBe([...example.matchAll(/^# [A-Z][A-Z0-9_]*=/gm)].length)
  })
})
