import { describe, expect, it } from 'vitest'
import { PlainFinder } from '../../test/support/plain-finder.ts'
import type { ScreeningConfig } from '../config/schema.ts'
import { toScreening } from '../config/to-screening.ts'
import type { ScreeningTerms } from '../domain/screening.ts'
import { readForm } from '../wire/read-form.ts'
import { type CollectedForm, screenForm } from './screen-form.ts'

const TYPE = 'multipart/form-data; boundary=b'
const FILE = Buffer.from([0, 255, 13, 10, 1, 2])

/** A form with text in every place that a client can put it. */
const form = Buffer.concat([
  Buffer.from(
    'preamble ada@canary.example\r\n--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nI am ada@canary.example\r\n',
  ),
  Buffer.from(
    '--b\r\nContent-Disposition: form-data; name="file"; filename="ada@canary.example.wav"\r\nX-A: ada@canary.example\r\n\r\n',
  ),
  FILE,
  Buffer.from(
    '\r\n--b\r\nContent-Disposition: form-data; name="language"\r\n\r\nen ada@canary.example\r\n--b--\r\nada@canary.example',
  ),
])

function screen(bytes: Buffer, settings: ScreeningConfig): Promise<Exclude<CollectedForm, { kind: 'gone' }>> {
  const screens = { finderOf: () => new PlainFinder(), isModel: () => false, salt: 's' }
  return screenForm(
    screens,
    { tenantId: 'a', terms: toScreening(settings) as ScreeningTerms, contentType: TYPE },
    bytes,
  )
}

async function bytesOf(screened: Awaited<ReturnType<typeof screen>>, model: string): Promise<Buffer> {
  if (screened.kind === 'fault') throw new Error(screened.fault.message)
  const { pieces, length } = screened.body.open(model)
  const all: Uint8Array[] = []
  for await (const piece of pieces) all.push(piece)
  const bytes = Buffer.concat(all)
  expect(bytes.length).toBe(length)
  return bytes
}

describe('a form of a tenant with screens', () => {
  it('is rewritten in its fields and heads, before and behind its files, which stay as they are', async () => {
    const screened = await screen(form, { pii: 'redact' })
    const bytes = await bytesOf(screened, 'whisper')
    expect(bytes.toString('latin1')).not.toContain('canary')
    const read = readForm(bytes, TYPE)
    expect(read).toMatchObject({
      kind: 'ok',
      parts: [
        { name: 'model', content: Buffer.from('whisper') },
        { name: 'prompt', content: Buffer.from('I am <EMAIL>') },
        { name: 'file', fileName: '<EMAIL>', content: FILE },
        { name: 'language', content: Buffer.from('en <EMAIL>') },
      ],
    })
    expect(screened).toMatchObject({ found: { unscreened: ['file'], found: [{ category: 'email', count: 4 }] } })
  })

  it('gets the name of its model in the place of the one that it has', async () => {
    const plain = Buffer.from('--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nold\r\n--b--\r\n')
    expect((await bytesOf(await screen(plain, { pii: 'redact' }), 'new')).toString()).toBe(
      plain.toString().replace('old', 'new'),
    )
  })

  it('is refused where the policy blocks what it has, or files at all', async () => {
    expect(await screen(form, { pii: 'block' })).toMatchObject({ found: { found: [{ action: 'block' }] } })
    expect(await screen(form, { pii: 'redact', binary: 'refuse' })).toMatchObject({ fault: { code: 'content-filter' } })
    expect(await screen(Buffer.from('nonsense'), { pii: 'redact' })).toMatchObject({ fault: { code: 'invalid-file' } })
  })

  it('gives the event loop turns: a field may be as long as a body', async () => {
    let turns = 0
    const count = (): void => {
      turns++
      timer = setImmediate(count)
    }
    let timer = setImmediate(count)
    const field = 'some ordinary words '.repeat(10_000)
    const long = `--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n${field}\r\n--b--\r\n`
    await screen(Buffer.from(long), { pii: 'redact' })
    clearImmediate(timer)
    expect(turns).toBeGreaterThanOrEqual(10)
  })
})
