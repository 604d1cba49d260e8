import { BodyGatherer, BucketError, type ObjectBucket } from '../aws/http-bucket.ts'
import { JobsUnavailable } from '../domain/job.ts'
import type { FileAppender, FileBytes } from '../lifecycle/job-ports.ts'

/**
 * Files in a bucket, an object for each: for several gateways whose database should not hold them. What is small is put at
 * once, anything larger in parts. What knows of a file is the row that is written when it is complete; an upload that
 * breaks off is given up, and one whose process was killed is the bucket's to forget (a lifecycle rule of its own).
 */
export const PART_BYTES = 8 * 1_048_576

/** Ids are ours: letters, digits, dashes. Anything else would be a path. */
const ID = /^[A-Za-z0-9_-]{1,128}$/

export class BucketFileBytes implements FileBytes {
  readonly #bucket: ObjectBucket

  constructor(bucket: ObjectBucket) {
    this.#bucket = bucket
  }

  append(fileId: string): FileAppender {
    return new BucketAppender(this.#bucket, checked(fileId))
  }

  async read(fileId: string, at: number, length: number): Promise<Uint8Array> {
    return length <= 0 ? new Uint8Array() : told(this.#bucket.get(checked(fileId), at, length))
  }

  async remove(fileId: string): Promise<void> {
    await told(this.#bucket.remove(checked(fileId)))
  }
}

class BucketAppender implements FileAppender {
  readonly #bucket: ObjectBucket
  readonly #fileId: string
  readonly #body = new BodyGatherer(PART_BYTES)
  readonly #etags: string[] = []
  #uploadId: string | undefined
  #size = 0

  constructor(bucket: ObjectBucket, fileId: string) {
    this.#bucket = bucket
    this.#fileId = fileId
  }

  async write(piece: Uint8Array): Promise<void> {
    for (let at = 0; at < piece.length; ) {
      at += this.#body.add(piece.subarray(at))
      if (this.#body.isFull) await told(this.#putPart())
    }
    this.#size += piece.length
  }

  async end(): Promise<number> {
    await told(this.#finish())
    return this.#size
  }

  async drop(): Promise<void> {
    if (this.#uploadId !== undefined) await told(this.#bucket.abort(this.#fileId, this.#uploadId))
    await told(this.#bucket.remove(this.#fileId))
  }

  async #putPart(): Promise<void> {
    this.#uploadId ??= await this.#bucket.begin(this.#fileId)
    const no = this.#etags.length + 1
    this.#etags.push(await this.#bucket.part(this.#fileId, this.#uploadId, no, this.#body.take()))
  }

  async #finish(): Promise<void> {
    // A file without bytes is read as one that is not there. Each job has one, the file of its errors or of its answers.
    if (this.#size === 0) return this.#bucket.remove(this.#fileId)
    if (this.#uploadId === undefined) return this.#bucket.put(this.#fileId, this.#body.take())
    if (this.#body.length > 0) await this.#putPart()
    await this.#bucket.complete(this.#fileId, this.#uploadId, this.#etags)
  }
}

function checked(fileId: string): string {
  if (!ID.test(fileId)) throw new Error('no id of a file')
  return fileId
}

/** A bucket that is away is told as a store that is away. */
async function told<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    if (error instanceof BucketError) throw new JobsUnavailable(`Files cannot be reached now: ${error.message}.`)
    throw error
  }
}
