import { createHash, type Hash } from 'node:crypto'
import { type SignedCall, sha256Hex, signedHeaders } from './signature.ts'

/**
 * A bucket of S3, or of what speaks its language. Every call is bounded in time and, where the bucket says that it is busy
 * or does not answer, made again a few times: all of them may be.
 */
export interface BucketOptions {
  /** The bucket's own address, with a prefix for its names. */
  readonly url: string
  readonly region: string
  /** Absent: the address itself is allowed to, as one within a network of yours. */
  readonly credential?: { readonly accessKeyId: string; readonly secretKey: string } | undefined
  readonly now: () => Date
}

const CALL_MS = 30_000
const PAUSES_MS = [100, 400, 1_600]
const EMPTY = sha256Hex('')

export class BucketError extends Error {
  override readonly name = 'BucketError'
}

interface Answer {
  readonly status: number
  readonly etag: string
  readonly bytes: Uint8Array
}

interface Call {
  readonly method: SignedCall['method']
  readonly name: string
  readonly words?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: BucketBody | undefined
}

/** A body with its hash, which is made while the body is gathered: a large one at once would stop the event loop. */
export interface BucketBody {
  readonly bytes: Uint8Array
  readonly hash: string
}

export const bucketBody = (text: string): BucketBody => ({ bytes: Buffer.from(text), hash: sha256Hex(text) })

export class ObjectBucket {
  readonly #options: BucketOptions

  constructor(options: BucketOptions) {
    this.#options = options
  }

  async put(name: string, body: BucketBody, headers: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.#call({ method: 'PUT', name, body, headers })
  }

  /** Bytes from `at` on, fewer where the object ends; none where there is no object. */
  async get(name: string, at: number, length: number): Promise<Uint8Array> {
    const headers = { range: `bytes=${at}-${at + length - 1}` }
    const { status, bytes } = await this.#call({ method: 'GET', name, headers }, [200, 206, 404, 416])
    if (status === 404 || status === 416) return new Uint8Array()
    // A server without ranges gives the whole.
    return status === 200 ? bytes.subarray(at, at + length) : bytes
  }

  async remove(name: string): Promise<void> {
    await this.#call({ method: 'DELETE', name }, [200, 204, 404])
  }

  /** An upload in parts; its id. */
  async begin(name: string): Promise<string> {
    const { bytes } = await this.#call({ method: 'POST', name, words: { uploads: '' } })
    const id = /<UploadId>([^<]+)<\/UploadId>/.exec(textOf(bytes))?.[1]
    if (id === undefined) throw new BucketError('the bucket began an upload without saying its id')
    return unescaped(id)
  }

  /** The part's mark, which the end of the upload names. */
  async part(name: string, uploadId: string, no: number, body: BucketBody): Promise<string> {
    const words = { partNumber: String(no), uploadId }
    return (await this.#call({ method: 'PUT', name, words, body })).etag
  }

  async complete(name: string, uploadId: string, etags: readonly string[]): Promise<void> {
    const parts = etags.map((etag, i) => `<Part><PartNumber>${i + 1}</PartNumber><ETag>${etag}</ETag></Part>`)
    const xml = `<CompleteMultipartUpload xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join('')}</CompleteMultipartUpload>`
    const call = { method: 'POST', name, words: { uploadId }, body: bucketBody(xml) } as const
    const { bytes } = await this.#call(call)
    // This call alone may fail behind a head that says 200.
    if (textOf(bytes).includes('<Error>')) throw new BucketError('the bucket did not put the parts together')
  }

  async abort(name: string, uploadId: string): Promise<void> {
    await this.#call({ method: 'DELETE', name, words: { uploadId } }, [200, 204, 404])
  }

  async #call(call: Call, wanted: readonly number[] = [200]): Promise<Answer> {
    for (const pauseMs of [...PAUSES_MS, undefined]) {
      const answer = await this.#once(call)
      if (answer !== undefined && wanted.includes(answer.status)) return answer
      const isOver = answer !== undefined && answer.status < 500 && answer.status !== 429
      if (isOver || pauseMs === undefined)
        throw new BucketError(`the bucket ${answer === undefined ? 'does not answer' : `answered ${answer.status}`}`)
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
    throw new BucketError('the bucket does not answer')
  }

  /** Undefined when no answer came. */
  async #once({ method, name, words = {}, headers = {}, body }: Call): Promise<Answer | undefined> {
    const { url: base, region, credential, now } = this.#options
    const url = new URL(base)
    url.pathname = `${url.pathname.replace(/\/+$/, '')}/${name}`
    for (const [word, value] of Object.entries(words)) url.searchParams.set(word, value)
    const signed =
      credential === undefined
        ? headers
        : signedHeaders({ method, url, region, ...credential, now: now(), headers, bodyHash: body?.hash ?? EMPTY })
    const { host: _host, ...sent } = signed as Record<string, string>
    try {
      const signal = AbortSignal.timeout(CALL_MS)
      // Loaded by the first call: the package takes as long as a hundred files of ours.
      const { request } = await import('undici')
      const answer = await request(url, { method, headers: sent, signal, body: body?.bytes ?? null })
      const bytes = new Uint8Array(await answer.body.arrayBuffer())
      return { status: answer.statusCode, etag: String(answer.headers['etag'] ?? ''), bytes }
    } catch {
      return undefined
    }
  }
}

const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

const unescaped = (text: string): string =>
  text.replaceAll(/&(amp|lt|gt|quot|apos);/g, (_, word: keyof typeof ENTITIES) => ENTITIES[word])
const ENTITIES = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" } as const

/** Most files are small. */
const FIRST_BYTES = 65_536

/** Gathers bytes up to a size, and hashes them on the way. */
export class BodyGatherer {
  readonly #size: number
  #bytes: Buffer
  #used = 0
  #hash: Hash = createHash('sha256')

  constructor(size: number) {
    this.#size = size
    this.#bytes = Buffer.allocUnsafe(Math.min(size, FIRST_BYTES))
  }

  get isFull(): boolean {
    return this.#used === this.#size
  }

  get length(): number {
    return this.#used
  }

  /** How many bytes there was room for. */
  add(piece: Uint8Array): number {
    const part = piece.subarray(0, this.#size - this.#used)
    this.#grow(this.#used + part.length)
    this.#bytes.set(part, this.#used)
    this.#hash.update(part)
    this.#used += part.length
    return part.length
  }

  #grow(wanted: number): void {
    if (wanted <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.min(this.#size, Math.max(wanted, 2 * this.#bytes.length)))
    this.#bytes.copy(larger, 0, 0, this.#used)
    this.#bytes = larger
  }

  /** What was gathered; the next begins. */
  take(): BucketBody {
    const body = { bytes: this.#bytes.subarray(0, this.#used), hash: this.#hash.digest('hex') }
    this.#bytes = Buffer.allocUnsafe(Math.min(this.#size, FIRST_BYTES))
    this.#used = 0
    this.#hash = createHash('sha256')
    return body
  }
}
