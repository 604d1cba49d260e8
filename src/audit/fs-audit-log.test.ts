import { createHmac } from 'node:crypto'
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { AuditEvent } from '../domain/audit-event.ts'
import { listSegments } from '../spool/fs-segment.ts'
import { decodeHead, encodeHead, encodeRecords } from '../spool/spool-frame.ts'
import { openAuditKey } from './fs-audit-key.ts'
import { type AuditLogOptions, FsAuditLog } from './fs-audit-log.ts'
import { readCheckpointNotes } from './fs-checkpoint-files.ts'
import { findRequest, proveEvent } from './fs-prove.ts'
import { readChainEvents } from './fs-read-events.ts'
import { readSubjectKeys } from './fs-subject-keys.ts'
import { type ChainReport, verifyChain } from './fs-verify.ts'
import { openSeal, sealIdOf } from './seals.ts'
import { NoteSigner, readCheckpoint } from './signed-note.ts'
import { checkProof, readProof, writeProof } from './tlog-proof.ts'

const ORIGIN = 'test.example/0'
let root = ''
let folder = ''
let told: string[] = []
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'audit-'))
  folder = join(root, '0')
  told = []
})
afterEach(() => rmSync(root, { recursive: true }))

let nowUs = 1_790_000_000_000_000
const optionsOf = (more: Partial<AuditLogOptions> = {}): AuditLogOptions => ({
  folder,
  origin: ORIGIN,
  process: '0',
  key: openAuditKey(join(root, 'signing.key')),
  now: () => nowUs,
  later(ms, run) {
    const timer = setTimeout(run, ms)
    return () => clearTimeout(timer)
  },
  complain: (problem) => told.push(problem),
  bytesMax: 1e9,
  retentionMs: 1_000,
  ...more,
})

async function open(more?: Partial<AuditLogOptions>): Promise<FsAuditLog> {
  const log = await FsAuditLog.open(optionsOf(more))
  if (typeof log === 'string') throw new Error(log)
  return log
}

const settled = (n: number, more: Partial<AuditEvent> = {}): AuditEvent => ({
  kind: 'inference.settled',
  actor: { kind: 'key', name: 'alice-laptop' },
  org: 'acme',
  tenant: 'shop',
  request: `req_${n}`,
  model: 'm',
  decision: { outcome: 'completed', because: 'finished', policy: 'p1' },
  user: `user-${n % 3}@example.com`,
  text: `a secret prompt ${n}`,
  ...more,
})

/** Lives of a process, each with so many events: a segment each. */
async function write(...lives: number[]): Promise<void> {
  let n = 0
  for (const count of lives) {
    const log = await open()
    for (let i = 0; i < count; i++) log.append(settled(n++))
    await log.close()
  }
}

const publicKey = (): Buffer => new NoteSigner(ORIGIN, openAuditKey(join(root, 'signing.key')).seed).publicKey
const verify = async (notes?: readonly string[]): Promise<ChainReport> =>
  verifyChain({ folder, notes: notes ?? (await readCheckpointNotes(folder)), publicKey: publicKey() })
const textsOf = async (): Promise<string[]> => {
  const texts: string[] = []
  for await (const events of readChainEvents(folder)) texts.push(...events.map(({ text }) => text))
  return texts
}

/** Writes the segment anew from other texts, with a chain that is right in itself. */
async function rewrite(path: string, change: (texts: string[]) => string[]): Promise<void> {
  const bytes = readFileSync(path)
  const head = decodeHead(bytes)?.head as { first: number; chain: Buffer }
  const texts: string[] = []
  for await (const events of readChainEvents(folder, head.first)) {
    for (const { seq, text } of events) if (seq >= head.first) texts.push(text)
    break
  }
  writeFileSync(path, Buffer.concat([encodeHead(head), encodeRecords(head.chain, change(texts)).bytes]))
}

describe('the audit of a process', () => {
  it('keeps events in a fixed order of fields, over restarts, and is verified with its checkpoints', async () => {
    await write(300, 5, 1)
    const report = await verify()
    expect(report).toMatchObject({
      first: 1,
      last: 306,
      segments: 3,
      problems: [],
      origin: ORIGIN,
      tornTail: undefined,
    })
    expect(report.checkpointsHeld).toBeGreaterThanOrEqual(3)
    const [text = ''] = await textsOf()
    expect(Object.keys(JSON.parse(text) as object)).toEqual([
      'v',
      'seq',
      'at',
      'process',
      'kind',
      'actor',
      'org',
      'tenant',
      'request',
      'model',
      'decision',
      'user',
      'text',
    ])
    expect(told).toEqual([])
  })

  it('writes no text and no name of a person, anywhere', async () => {
    await write(20)
    for (const name of readdirSync(root, { recursive: true, withFileTypes: true })) {
      if (!name.isFile()) continue
      const bytes = readFileSync(join(name.parentPath, name.name), 'latin1')
      for (const word of ['secret prompt', 'user-1', 'alice-laptop']) expect(bytes).not.toContain(word)
    }
    const keys = await readSubjectKeys(folder)
    const { user, actor } = JSON.parse((await textsOf())[1] ?? '') as { user: string; actor: { name: string } }
    const opened = (sealed: string): string | undefined => openSeal(sealed, keys.get(sealIdOf(sealed)) as Buffer)
    expect([opened(user), opened(actor.name)]).toEqual(['user-1@example.com', 'alice-laptop'])
    expect(statSync(join(root, 'signing.key')).mode & 0o777).toBe(0o600)
  })

  it('hashes the same prompt alike within a tenant, and differently in another, by HMAC', async () => {
    const log = await open()
    const { seals } = log
    const { secret } = openAuditKey(join(root, 'signing.key'))
    const hmac = (key: Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
    for (const text of ['', 'hello', 'ü€😀'.repeat(5_000)]) {
      expect(seals.hashText('a', text)).toBe(hmac(hmac(secret, 'tenant\na'), text).toString('base64url'))
    }
    expect(seals.hashText('a', 'hello')).toBe(seals.hashText('a', 'hello'))
    expect(seals.hashText('a', 'hello')).not.toBe(seals.hashText('b', 'hello'))
    await log.close()
  })

  it('forgets a subject whose key is destroyed, without a change of the chain', async () => {
    const log = await open()
    for (let n = 0; n < 9; n++) log.append(settled(n))
    await log.checkpoint()
    expect(await log.erase(log.seals.tagOf('shop', 'user', 'user-1@example.com'))).toBe(1)
    log.append(settled(9 * 3 + 1))
    await log.close()
    const keys = await readSubjectKeys(folder)
    const users = (await textsOf()).map((text) => (JSON.parse(text) as { user: string }).user)
    const opened = users.map((user) => openSeal(user, keys.get(sealIdOf(user)) ?? Buffer.alloc(32)))
    expect(opened.filter((name) => name === 'user-0@example.com')).toHaveLength(3)
    expect(opened.slice(0, 9).filter((name) => name === undefined)).toHaveLength(3)
    // The subject comes back as a new one.
    expect(opened.at(-1)).toBe('user-1@example.com')
    expect((await verify()).problems).toEqual([])
  })

  it('says when an event was changed, removed or moved: at which event, in which file', async () => {
    await write(10, 10)
    const [first, second] = await listSegments(folder)
    const path = first?.path ?? ''
    const whole = readFileSync(path)
    const at = whole.indexOf('req_4')
    whole[at + 4] = '5'.charCodeAt(0)
    writeFileSync(path, whole)
    expect((await verify()).problems[0]).toMatchObject({ kind: 'changed', event: 5, file: path })
    whole[at + 4] = '4'.charCodeAt(0)
    writeFileSync(path, whole)
    expect((await verify()).problems).toEqual([])

    // Two frames of the same length, exchanged.
    const other = second?.path ?? ''
    const bytes = readFileSync(other)
    const [a, b] = [bytes.indexOf('"seq":13,'), bytes.indexOf('"seq":14,')].map((seq) => seq - '{"v":1,'.length - 4)
    const size = (b as number) - (a as number)
    const [one, two] = [bytes.subarray(a, b), bytes.subarray(b, (b as number) + size)].map((part) => Buffer.from(part))
    writeFileSync(
      other,
      Buffer.concat([bytes.subarray(0, a), two as Buffer, one as Buffer, bytes.subarray((b as number) + size)]),
    )
    expect((await verify()).problems[0]).toMatchObject({ kind: 'changed', event: 13, file: other })
    // One frame taken out.
    writeFileSync(other, Buffer.concat([bytes.subarray(0, a), bytes.subarray(b)]))
    expect((await verify()).problems[0]).toMatchObject({ kind: 'changed', event: 13, file: other })
  })

  it('says which events are missing when a segment is gone', async () => {
    await write(10, 10, 10)
    const [first, second] = await listSegments(folder)
    unlinkSync(second?.path ?? '')
    expect((await verify()).problems[0]).toMatchObject({ kind: 'missing-events', event: 11 })
    unlinkSync(first?.path ?? '')
    const { problems } = await verify()
    expect(problems.map(({ kind }) => kind)).toContain('missing-events')
    expect(problems.find(({ event }) => event === 1)?.because).toContain('retention')
  })

  it('finds a cut tail by its checkpoints, which the chain alone does not', async () => {
    await write(10, 10)
    const notes = await readCheckpointNotes(folder)
    const segments = await listSegments(folder)
    const bytes = readFileSync(segments[1]?.path ?? '')
    truncateSync(segments[1]?.path ?? '', bytes.indexOf('"seq":17,') - '{"v":1,'.length - 4)
    expect((await verify([])).problems).toEqual([])
    expect((await verify(notes)).problems).toEqual([
      expect.objectContaining({ kind: 'cut-tail', event: 17, because: expect.stringContaining('20 events, and 16') }),
    ])
    unlinkSync(segments[1]?.path ?? '')
    expect((await verify([])).problems).toEqual([])
    expect((await verify(notes)).problems[0]).toMatchObject({ kind: 'cut-tail', event: 11 })
  })

  it('finds a chain that was made again with another event, and says since which checkpoint', async () => {
    await write(10, 10)
    const notes = await readCheckpointNotes(folder)
    const [, second] = await listSegments(folder)
    await rewrite(second?.path ?? '', (texts) => texts.map((text) => text.replace('req_14', 'req_99')))
    expect((await verify([])).problems).toEqual([])
    expect((await verify(notes)).problems).toEqual([expect.objectContaining({ kind: 're-chained', event: 11 })])
  })

  it('finds events that a new chain has in another order, even without checkpoints', async () => {
    await write(10)
    const [first] = await listSegments(folder)
    await rewrite(first?.path ?? '', (texts) => [...texts.slice(0, 5).reverse(), ...texts.slice(5)])
    expect((await verify([])).problems[0]).toMatchObject({ kind: 'out-of-place', event: 1 })
  })

  it('takes no checkpoint that another key has signed', async () => {
    await write(3)
    const [note = ''] = await readCheckpointNotes(folder)
    const forged = new NoteSigner(ORIGIN, Buffer.alloc(32, 9)).sign(note.slice(0, note.indexOf('\n\n') + 1))
    expect((await verify([forged])).problems[0]).toMatchObject({ kind: 'bad-checkpoint' })
  })

  it('records a torn tail when it is cut, and goes on', async () => {
    await write(5)
    const log = await open()
    log.append(settled(100))
    await log.committed(6, 10_000)
    const [, second] = await listSegments(folder)
    const path = second?.path ?? ''
    // The process dies here, within a write.
    writeFileSync(path, Buffer.concat([readFileSync(path), Buffer.from([90, 0, 0, 0, 1, 2, 3])]))
    expect((await verify()).tornTail).toMatchObject({ event: 7, file: path })
    const again = await open()
    await again.close()
    const last = JSON.parse((await textsOf()).at(-1) ?? '') as { kind: string; detail: { tornBytes: number } }
    expect(last).toMatchObject({ kind: 'gap', seq: 7, detail: { tornBytes: 7 } })
    expect((await verify()).problems).toEqual([])
  })

  it('does not go on with a chain whose end is not that of its last checkpoint', async () => {
    await write(10)
    const [first] = await listSegments(folder)
    const bytes = readFileSync(first?.path ?? '')
    truncateSync(first?.path ?? '', bytes.indexOf('"seq":7,') - '{"v":1,'.length - 4)
    expect(await FsAuditLog.open(optionsOf())).toContain('has 10 events, and 6 of them')
    writeFileSync(first?.path ?? '', bytes)
    await rewrite(first?.path ?? '', (texts) => texts.map((text) => text.replace('req_4', 'req_5')))
    expect(await FsAuditLog.open(optionsOf())).toContain('do not agree')
    // What lies there was not touched.
    expect(await listSegments(folder)).toHaveLength(1)
  })

  it('loses events when it is full, counts them, and records the gap when there is room', async () => {
    await write(300)
    const [segment] = await listSegments(folder)
    const log = await open({ bytesMax: statSync(segment?.path ?? '').size + 6_000 })
    let taken = 0
    for (let n = 0; n < 50; n++) if (log.append(settled(n)) !== undefined) taken++
    expect(taken).toBeGreaterThan(0)
    expect(log.isFull).toBe(true)
    expect(log.view().lost).toBe(50 - taken)
    await log.committed(300 + taken, 10_000)
    nowUs = Date.now() * 1_000 + 60_000_000
    await log.trim()
    log.append(settled(60))
    await log.close()
    nowUs = 1_790_000_000_000_000
    const lines = (await textsOf()).map((text) => JSON.parse(text) as { kind: string; detail?: object })
    expect(lines.slice(taken).map(({ kind }) => kind)).toEqual(['gap', 'data.removed', 'inference.settled'])
    expect(lines[taken]).toMatchObject({ detail: { events: 50 - taken, tenants: [`shop: ${50 - taken}`] } })
    expect(log.view().lost).toBe(50 - taken)
  })

  it('proves a request with log n hashes, to whoever has the key and nothing else', async () => {
    await write(100, 27)
    const [event] = await findRequest(folder, 'req_77')
    const proof = writeProof((await proveEvent(folder, event!))!)
    const read = readProof(proof)!
    expect(read.proof.length).toBeLessThanOrEqual(7)
    expect(JSON.parse(read.text)).toMatchObject({ request: 'req_77' })
    expect(checkProof(read, publicKey())).toMatchObject({ kind: 'proved', origin: ORIGIN })
    expect(checkProof({ ...read, text: read.text.replace('req_77', 'req_78') }, publicKey()).kind).toBe('refused')
    expect(checkProof(read, Buffer.alloc(32, 1)).kind).toBe('refused')
    expect(readProof('rubbish')).toBeUndefined()
    expect(await findRequest(folder, 'req_7')).toHaveLength(1)
  })

  it('removes segments past their retention, says so, and still verifies and proves the rest', async () => {
    await write(10, 10)
    const log = await open()
    log.append(settled(20))
    await log.committed(21, 10_000)
    nowUs = Date.now() * 1_000 + 60_000_000
    await log.trim()
    log.append(settled(21))
    await log.close()
    nowUs = 1_790_000_000_000_000
    const report = await verify()
    expect(report).toMatchObject({ first: 21, problems: [] })
    expect(report.checkpointsBefore).toBeGreaterThanOrEqual(1)
    const [event] = await findRequest(folder, 'req_21')
    expect(checkProof((await proveEvent(folder, event!))!, publicKey()).kind).toBe('proved')
    const after = await open()
    expect(after.append(settled(22))).toBe(24)
    await after.close()
    expect((await verify()).problems).toEqual([])
  })

  it('lists the heads of other chains in its checkpoints', async () => {
    const head = { origin: 'test.example/1', size: 7, root: Buffer.alloc(32, 7).toString('base64') }
    const log = await open({ peers: () => [head, { ...head, origin: ORIGIN }] })
    log.append(settled(1))
    await log.close()
    expect(readCheckpoint(log.lastNote)?.peers).toEqual([head])
    expect((await verify()).problems).toEqual([])
  })

  it('answers within its time whether an event is on the disk', async () => {
    const log = await open()
    expect(await log.committed(log.append(settled(1)) as number, 10_000)).toBe(true)
    await log.close()
    // A disk that never comes to writing.
    const later = (ms: number, run: () => void): (() => void) => {
      if (ms === 1) setTimeout(run, ms)
      return () => {}
    }
    const stuck = await open({ later })
    expect(await stuck.committed(stuck.append(settled(2)) as number, 1)).toBe(false)
    await stuck.close()
    expect(await stuck.committed(2, 1)).toBe(true)
  })
})
