import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ObjectBucket } from '../../src/aws/http-bucket.ts'
import { JobsUnavailable } from '../../src/domain/job.ts'
import type { FileBytes } from '../../src/lifecycle/job-ports.ts'
import { FsFileBytes } from '../../src/store/fs-file-bytes.ts'
import { BucketFileBytes, PART_BYTES } from '../../src/store/http-bucket-file-bytes.ts'
import { PAGE_BYTES, SqlFileBytes } from '../../src/store/sql-file-bytes.ts'
import { SQL_DATABASES } from '../support/databases.ts'
import { type SqsServer, startSqs } from '../support/sqs.ts'

/** What every place does where files rest: a disk, a database, a bucket. */
interface OpenedFiles {
  readonly files: FileBytes
  close(): Promise<void>
}

const bucketOf = (url: string): BucketFileBytes => {
  const credential = { accessKeyId: 'test', secretKey: 'test' }
  return new BucketFileBytes(new ObjectBucket({ url, region: 'us-east-1', credential, now: () => new Date() }))
}

interface Place {
  readonly name: string
  readonly whyNot?: string | undefined
  readonly open: () => Promise<OpenedFiles>
  /** Large files are of parts. */
  readonly hasParts?: boolean
}

const PLACES: readonly Place[] = [
  {
    name: 'on the disk',
    async open() {
      const folder = mkdtempSync(join(tmpdir(), 'spillway-files-'))
      return { files: new FsFileBytes(join(folder, 'files')), close: async () => rmSync(folder, { recursive: true }) }
    },
  },
  ...SQL_DATABASES.map(({ name, whyNot, open }) => ({
    name: `in ${name}`,
    whyNot,
    async open() {
      const opened = await open()
      return { files: new SqlFileBytes(opened.database!), close: () => opened.close() }
    },
  })),
  {
    name: 'in a bucket',
    hasParts: true,
    async open() {
      const server = await startSqs()
      return { files: bucketOf(`${server.bucket('files')}/jobs/`), close: () => server.close() }
    },
  },
]

const PARTS: [string, number][] = [
  ['of one part', PART_BYTES],
  ['of several parts', 2 * PART_BYTES + 5],
]

const bytesOf = (length: number): Buffer => Buffer.alloc(length, 'abcdefghijk\n')

async function written(files: FileBytes, id: string, all: Uint8Array, step = 100_000): Promise<number> {
  const appender = files.append(id)
  for (let at = 0; at < all.length; at += step) await appender.write(all.subarray(at, at + step))
  return appender.end()
}

describe.each(PLACES)('files $name', ({ whyNot, open, hasParts = false }) => {
  if (whyNot !== undefined) {
    it.skip(whyNot, () => {})
    return
  }
  let opened: OpenedFiles
  beforeAll(async () => {
    opened = await open()
  }, 60_000)
  afterAll(() => opened?.close())

  it.each<[string, number]>([
    ['empty', 0],
    ['small', 77],
    ['of several pages', 2 * PAGE_BYTES + 77],
    ...(hasParts ? PARTS : []),
  ])('%s are read as they were written, in whole and in part', { timeout: 60_000 }, async (name, length) => {
    const { files } = opened
    const id = `file-${name.replaceAll(' ', '-')}`
    const all = bytesOf(length)
    expect(await written(files, id, all)).toBe(length)
    const read = async (at: number, some: number) => Buffer.from(await files.read(id, at, some))
    const middle = Math.floor(length / 2)
    expect((await read(0, length + 10)).equals(all)).toBe(true)
    expect((await read(middle, 9)).equals(all.subarray(middle, middle + 9))).toBe(true)
    expect((await read(PAGE_BYTES - 3, 9)).equals(all.subarray(PAGE_BYTES - 3, PAGE_BYTES + 6))).toBe(true)
    expect((await read(Math.max(0, length - 5), 100)).equals(all.subarray(Math.max(0, length - 5)))).toBe(true)
    expect(await read(length, 10)).toHaveLength(0)
    expect(await read(0, 0)).toHaveLength(0)
    await files.remove(id)
    expect(await read(0, 10)).toHaveLength(0)
    await files.remove(id)
  })

  it('that are dropped are gone, whatever was written', { timeout: 60_000 }, async () => {
    const { files } = opened
    for (const length of [10, hasParts ? PART_BYTES + 1 : PAGE_BYTES + 1]) {
      const dropped = files.append('file-dropped')
      await dropped.write(bytesOf(length))
      await dropped.drop()
      expect(await files.read('file-dropped', 0, 10)).toHaveLength(0)
    }
  })

  it('that are written anew have the new bytes alone', async () => {
    const { files } = opened
    await written(files, 'file-anew', bytesOf(100))
    await files.remove('file-anew')
    expect(await written(files, 'file-anew', Buffer.from('xyz'))).toBe(3)
    expect(Buffer.from(await files.read('file-anew', 0, 100)).toString()).toBe('xyz')
  })
})

it.each([
  ['the disk', new FsFileBytes(tmpdir())],
  ['a bucket', bucketOf('http://127.0.0.1:1/none')],
])('%s has no file whose id is a path', async (_, files) => {
  await expect(files.read('../etc', 0, 1)).rejects.toThrow('no id')
  expect(() => files.append('a/b')).toThrow('no id')
})

describe('a bucket with faults', () => {
  let server: SqsServer
  let front: Server
  let url: string
  const seen: string[] = []
  /** The status to answer a call with, in place of the bucket. */
  let fault: (call: string, nth: number) => { status: number; body?: string } | 'cut' | undefined = () => undefined
  beforeAll(async () => {
    server = await startSqs()
    const bucket = server.bucket('files')
    const answer = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
      const pieces: Buffer[] = []
      for await (const piece of req) pieces.push(piece as Buffer)
      const call = `${req.method} ${req.url}`
      seen.push(call)
      const wrong = fault(call, seen.filter((one) => one === call).length)
      if (wrong === 'cut') res.destroy()
      else if (wrong !== undefined) res.writeHead(wrong.status).end(wrong.body)
      else {
        const { host: _, connection: __, 'content-length': ___, ...headers } = req.headers as Record<string, string>
        const method = req.method ?? 'GET'
        const body = method === 'PUT' || method === 'POST' ? Buffer.concat(pieces) : null
        const passed = await fetch(new URL(bucket).origin + req.url, { method, headers, body })
        const { etag } = Object.fromEntries(passed.headers)
        res.writeHead(passed.status, etag === undefined ? {} : { etag }).end(Buffer.from(await passed.arrayBuffer()))
      }
    }
    front = createServer((req, res) => void answer(req, res))
    await new Promise<void>((resolve) => {
      front.listen(0, '127.0.0.1', resolve)
    })
    url = `http://127.0.0.1:${(front.address() as AddressInfo).port}/files`
  })
  afterAll(async () => {
    front?.closeAllConnections()
    front?.close()
    await server?.close()
  })

  it('is asked again when it is busy, cut off or fails', { timeout: 60_000 }, async () => {
    const files = bucketOf(url)
    seen.length = 0
    fault = (_, nth) => (nth === 1 ? { status: 503 } : nth === 2 ? 'cut' : undefined)
    const all = bytesOf(PART_BYTES + 3)
    expect(await written(files, 'file-busy', all, 1_048_576)).toBe(all.length)
    expect(Buffer.from(await files.read('file-busy', 0, all.length)).equals(all)).toBe(true)
    expect(new Set(seen.map((call) => seen.filter((one) => one === call).length))).toEqual(new Set([3]))
  })

  it.each<[string, typeof fault, number]>([
    ['refuses', () => ({ status: 403 }), 1],
    ['is away', () => 'cut', 4],
  ])('is told as away when it %s, after a few tries', async (_, wrong, tries) => {
    const files = bucketOf(url)
    seen.length = 0
    fault = wrong
    await expect(files.read('file-x', 0, 10)).rejects.toThrow(JobsUnavailable)
    expect(seen).toHaveLength(tries)
    await expect(written(files, 'file-x', bytesOf(10))).rejects.toThrow(JobsUnavailable)
  })

  it('that did not put the parts together has no file, though it said 200', { timeout: 60_000 }, async () => {
    const files = bucketOf(url)
    fault = (call) =>
      call.startsWith('POST') && call.includes('uploadId=')
        ? { status: 200, body: '<Error><Code>X</Code></Error>' }
        : undefined
    await expect(written(files, 'file-parts', bytesOf(PART_BYTES + 3))).rejects.toThrow(JobsUnavailable)
  })
})
