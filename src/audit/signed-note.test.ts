import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import {
  type AuditCheckpoint,
  checkpointText,
  NoteSigner,
  openNote,
  readCheckpoint,
  readPublicKey,
  verifierKeyOf,
} from './signed-note.ts'

const seed = createHash('sha256').update('a seed for tests').digest()
const signer = new NoteSigner('example.com/audit/0', seed)
const checkpoint: AuditCheckpoint = {
  origin: 'example.com/audit/0',
  size: 20_852_163,
  root: createHash('sha256').update('root').digest(),
  chain: createHash('sha256').update('chain').digest(),
  atMs: 1_790_000_000_000,
  peers: [{ origin: 'example.com/audit/1', size: 7, root: Buffer.alloc(32, 7).toString('base64') }],
}

describe('a signed checkpoint', () => {
  it('has the lines of C2SP’s form, and comes back as it was', () => {
    const note = signer.sign(checkpointText(checkpoint))
    const lines = note.split('\n')
    expect(lines.slice(0, 3)).toEqual([checkpoint.origin, '20852163', checkpoint.root.toString('base64')])
    expect(lines.at(-3)).toBe('')
    expect(lines.at(-2)).toMatch(/^\u2014 example\.com\/audit\/0 [A-Za-z0-9+/]+=*$/)
    expect(note.endsWith('\n')).toBe(true)
    const text = openNote(note, signer.name, signer.publicKey) as string
    expect(readCheckpoint(text)).toEqual(checkpoint)
    expect(readCheckpoint(note)).toEqual(checkpoint)
  })

  it('signs and opens the example of Go’s note package, byte by byte', () => {
    const verifier = 'PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW'
    const secret = Buffer.from('AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz', 'base64').subarray(1)
    const text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
    const signature = 'x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM='
    const note = `${text}\n\u2014 PeterNeumann ${signature}\n`
    const peter = new NoteSigner('PeterNeumann', secret)
    expect(peter.sign(text)).toBe(note)
    expect(verifierKeyOf('PeterNeumann', peter.publicKey)).toBe(verifier)
    expect(openNote(note, 'PeterNeumann', readPublicKey(verifier) as Buffer)).toBe(text)
  })

  it('is refused when a byte of it, its signer or its key is another', () => {
    const note = signer.sign(checkpointText(checkpoint))
    expect(openNote(note.replace('20852163', '20852162'), signer.name, signer.publicKey)).toBeUndefined()
    expect(openNote(note, 'example.com/audit/1', signer.publicKey)).toBeUndefined()
    const other = new NoteSigner(signer.name, createHash('sha256').update('another').digest())
    expect(openNote(note, signer.name, other.publicKey)).toBeUndefined()
    expect(openNote(other.sign(checkpointText(checkpoint)), signer.name, signer.publicKey)).toBeUndefined()
    expect(openNote('no note', signer.name, signer.publicKey)).toBeUndefined()
  })

  it('reads keys in both forms, and no others', () => {
    const whole = verifierKeyOf(signer.name, signer.publicKey)
    expect(readPublicKey(whole)?.equals(signer.publicKey)).toBe(true)
    expect(readPublicKey(signer.publicKey.toString('base64'))?.equals(signer.publicKey)).toBe(true)
    expect(readPublicKey('rubbish')).toBeUndefined()
    expect(() => new NoteSigner('two words', seed)).toThrow('cannot name a log')
  })

  it.each(['', 'origin\n', 'origin\n01\nx\n', 'origin\n1\nshort\n', ' \n1\nx\n'])('is not read from %j', (text) => {
    expect(readCheckpoint(text)).toBeUndefined()
  })
})
