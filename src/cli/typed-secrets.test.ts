import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { DEMO_ADMIN_KEY } from '../config/demo.ts'
import { withoutTypedSecrets } from './typed-secrets.ts'

const folder = mkdtempSync(join(tmpdir(), 'spillway-typed-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function run(flags: Record<string, string>) {
  const said: string[] = []
  const io = { out: () => {}, err: (line: string) => void said.push(line) }
  const argv = ['node', 'spillway', ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`)]
  return { flags: withoutTypedSecrets(flags, io as never, argv), said }
}

it('warns of a secret on the command line, and does not repeat it', () => {
  const { flags, said } = run({ key: 'sk-real', model: 'm' })
  expect(flags).toEqual({ key: 'sk-real', model: 'm' })
  expect(said).toEqual([expect.stringContaining('--key has a secret on the command line')])
  expect(said.join()).not.toContain('sk-real')
  expect(run({ 'api-key': 'sk-real' }).said).toHaveLength(1)
})

it('takes it from a file, and says why it cannot', () => {
  const path = join(folder, 'key')
  writeFileSync(path, 'sk-real\n')
  expect(run({ key: `@${path}` })).toEqual({ flags: { key: 'sk-real' }, said: [] })
  expect(() => run({ key: `@${folder}/none` })).toThrow(/which cannot be read \(ENOENT\)/)
})

it('says nothing where nobody typed it', () => {
  const said: string[] = []
  withoutTypedSecrets({ key: 'sk-real' }, { out: () => {}, err: (line: string) => void said.push(line) } as never, [])
  expect(said).toEqual([])
})

it('says nothing of the demo’s keys, which are published, nor of other flags', () => {
  expect(run({ key: DEMO_ADMIN_KEY, because: 'sk-x' }).said).toEqual([])
})
