import { type Clock, usToMs } from '../../base/clock.ts'
import type { JobFile } from '../../domain/job.ts'
import type { FileAppender, FileBytes, JobStore } from '../../lifecycle/job-ports.ts'
import { KEPT_S_MAX, KEPT_S_MIN } from '../../wire/batches.ts'
import { FormStream } from '../../wire/form-stream.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { BodyPieces } from '../body-pieces.ts'
import { unsupportedBody } from '../collect-body.ts'
import type { Exchange } from '../exchange.ts'
import { allowSlowBody } from '../http-connections.ts'
import { dropRest } from '../http-upload.ts'
import { BodyFault } from './corpora-answer.ts'

/** Files of jobs: uploads of any size go to where files rest while they come; nothing of them is kept in memory. */
export interface JobFileDeps {
  readonly store: JobStore
  readonly files: FileBytes
  readonly clock: Clock
  readonly patienceUs: number
  /** Of one file, and of all files of a tenant. */
  readonly fileBytesMax: number
  readonly storedBytesMax: number
  readonly makeId: () => string
}

/** A form whose purpose is not known yet is held up to this size; then its file goes to where files rest. */
const HELD_BYTES_MAX = 1_048_576
const FIELD_BYTES_MAX = 1_024
const MULTIPART = 'multipart/form-data'

const isJobFileId = (id: string): boolean => /^file-(batch|output|errors)-/.test(id)

/** What came in a form. A file of another purpose is whole in `held`, if it is small enough for its reader. */
export type TakenUpload =
  | { readonly kind: 'job'; readonly file: JobFile }
  | { readonly kind: 'other'; readonly name: string; readonly purpose: string; readonly bytes: Buffer }

/** Files of other purposes. */
export interface OtherUploads {
  readonly otherBytesMax: number
  /** Called before the file is read, with the declared size of the form, where its purpose stands in front of it. */
  readonly onOther: (declaredBytes: number) => void
}

export async function takeUpload(
  deps: JobFileDeps,
  exchange: Exchange,
  tenantId: string,
  { otherBytesMax, onOther }: OtherUploads,
): Promise<TakenUpload | undefined> {
  const { req, res, visit } = exchange
  const { 'content-type': contentType = '', 'content-encoding': encoding } = req.headers
  const unsupported = unsupportedBody(MULTIPART, contentType, encoding)
  if (unsupported !== undefined) throw new BodyFault(unsupported)
  const declared = Number(req.headers['content-length'] ?? 0)
  if (declared > deps.fileBytesMax + HELD_BYTES_MAX) {
    dropRest(exchange, deps)
    throw new BodyFault(tooLarge(deps.fileBytesMax))
  }
  const refusal = visit?.pass(declared)
  if (refusal !== undefined) {
    exchange.sendRefusal(refusal)
    dropRest(exchange, deps)
    return undefined
  }
  allowSlowBody(res)
  const intake = new Intake(deps, tenantId)
  try {
    const form = new FormStream(contentType)
    const pieces = new BodyPieces(exchange, deps)
    for await (const piece of pieces) {
      if (declared === 0) visit?.passMore(piece.length)
      for (const event of form.take(piece)) {
        if (event.kind !== 'part') await intake.take(event.bytes)
        else if (intake.begin(event.name, event.fileName)) onOther(declared)
      }
      if (form.problem !== undefined) break
    }
    if (form.problem !== undefined) throw new BodyFault(unreadable(form.problem))
    if (!pieces.isWhole) throw new BodyFault(invalidRequest('The form was not sent in time.', null, 'request-too-slow'))
    if (!form.isWhole) throw new BodyFault(unreadable('its last part has no end'))
    return await intake.end(otherBytesMax)
  } catch (error) {
    await intake.drop()
    dropRest(exchange, deps)
    throw error
  }
}

/** The parts of one form. */
class Intake {
  readonly #deps: JobFileDeps
  readonly #tenantId: string
  readonly #id: string
  readonly #fields = new Map<string, string>()
  #name = ''
  #fileName: string | undefined
  #isFile = false
  #held: Buffer[] = []
  #bytes = 0
  #appender: FileAppender | undefined

  constructor(deps: JobFileDeps, tenantId: string) {
    this.#deps = deps
    this.#tenantId = tenantId
    this.#id = `file-batch-${deps.makeId()}`
  }

  /** True when a file begins that is known not to be a job's. */
  begin(name: string, fileName: string | undefined): boolean {
    this.#name = name
    this.#isFile = name === 'file' && fileName !== undefined && this.#fileName === undefined
    if (!this.#isFile) return false
    this.#fileName = (fileName ?? '').slice(0, 1_024) || 'file'
    const purpose = this.#fields.get('purpose')
    return purpose !== undefined && purpose !== 'batch'
  }

  async take(bytes: Buffer): Promise<void> {
    if (!this.#isFile) {
      const before = this.#fields.get(this.#name) ?? ''
      if (before.length + bytes.length <= FIELD_BYTES_MAX) this.#fields.set(this.#name, before + bytes.toString('utf8'))
      return
    }
    this.#bytes += bytes.length
    if (this.#bytes > this.#deps.fileBytesMax) throw new BodyFault(tooLarge(this.#deps.fileBytesMax))
    if (this.#appender !== undefined) await this.#appender.write(bytes)
    else {
      this.#held.push(Buffer.from(bytes))
      if (this.#bytes > HELD_BYTES_MAX) await this.#spill()
    }
  }

  async end(otherBytesMax: number): Promise<TakenUpload> {
    if (this.#fileName === undefined)
      throw new BodyFault(invalidRequest("Missing required parameter: 'file'.", 'file', 'invalid-file'))
    const purpose = this.#fields.get('purpose')?.slice(0, 64) || 'assistants'
    if (purpose === 'batch') return { kind: 'job', file: await this.#keep(this.#fileName) }
    if (this.#bytes > otherBytesMax) throw new BodyFault(tooLarge(otherBytesMax))
    const bytes = await this.#recall()
    return { kind: 'other', name: this.#fileName, purpose, bytes }
  }

  async drop(): Promise<void> {
    await this.#appender?.drop()
  }

  async #keep(name: string): Promise<JobFile> {
    const { store, clock, storedBytesMax } = this.#deps
    const tenantId = this.#tenantId
    const createdAtMs = Math.floor(usToMs(clock.now()))
    const expiresAtMs = this.#expiresAt(createdAtMs)
    if ((await store.fileBytes(tenantId)) + this.#bytes > storedBytesMax) {
      const message = `Your files for batches may have ${storedBytesMax} bytes together. Delete some first.`
      throw new BodyFault(invalidRequest(message, 'file', 'request-too-large'))
    }
    await this.#spill()
    const bytes = (await this.#appender?.end()) ?? 0
    const file: JobFile = { id: this.#id, tenantId, name, purpose: 'batch', bytes, createdAtMs, expiresAtMs }
    await store.addFile(file)
    return file
  }

  /** SDKs send an object in a form as `expires_after[seconds]`. */
  #expiresAt(createdAtMs: number): number | undefined {
    const anchor = this.#fields.get('expires_after[anchor]')
    const seconds = this.#fields.get('expires_after[seconds]')
    if (anchor === undefined && seconds === undefined) return undefined
    const param = 'expires_after'
    if (anchor !== 'created_at')
      throw new BodyFault(
        invalidRequest(`Invalid '${param}[anchor]': it must be "created_at".`, param, 'invalid-value'),
      )
    const kept = Number(seconds)
    if (!Number.isInteger(kept) || kept < KEPT_S_MIN || kept > KEPT_S_MAX) {
      const message = `Invalid '${param}[seconds]': it must be a whole number from ${KEPT_S_MIN} to ${KEPT_S_MAX}.`
      throw new BodyFault(invalidRequest(message, param, 'invalid-value'))
    }
    return createdAtMs + kept * 1_000
  }

  async #spill(): Promise<void> {
    this.#appender ??= this.#deps.files.append(this.#id)
    for (const part of this.#held.splice(0)) await this.#appender.write(part)
  }

  async #recall(): Promise<Buffer> {
    if (this.#appender === undefined) return Buffer.concat(this.#held)
    await this.#appender.end()
    const bytes = await this.#deps.files.read(this.#id, 0, this.#bytes)
    await this.#deps.files.remove(this.#id)
    return Buffer.from(bytes)
  }
}

/** The file, if it is one of a job and this tenant's. */
export async function findJobFile(
  { store, clock }: JobFileDeps,
  tenantId: string,
  id: string,
): Promise<JobFile | undefined> {
  const file = isJobFileId(id) ? await store.findFile(tenantId, id) : undefined
  return file?.expiresAtMs !== undefined && file.expiresAtMs <= usToMs(clock.now()) ? undefined : file
}

export async function removeJobFile({ store, files }: JobFileDeps, { tenantId, id }: JobFile): Promise<void> {
  await store.removeFile(tenantId, id)
  await files.remove(id)
}

const SENT_BYTES = 262_144

/** Sends the content piece by piece, as fast as its reader takes it. */
/** What a client uploaded is never run as a page, whatever a browser takes it for. */
export const NO_SNIFFING: readonly string[] = ['x-content-type-options', 'nosniff']

export async function sendContent(
  { files, clock, patienceUs }: JobFileDeps,
  { res, idHeaders }: Exchange,
  file: JobFile,
  headers: readonly string[],
): Promise<void> {
  const head = ['content-type', 'application/octet-stream', 'content-length', String(file.bytes)]
  res.writeHead(200, [...head, ...NO_SNIFFING, ...idHeaders, ...headers])
  for (let at = 0; at < file.bytes && !res.destroyed; ) {
    const piece = await files.read(file.id, at, Math.min(SENT_BYTES, file.bytes - at))
    if (piece.length === 0) break
    at += piece.length
    if (!res.write(piece)) await drained({ res, clock, patienceUs })
  }
  if (!res.destroyed) res.end()
}

/** A reader that takes nothing for too long is cut off. */
function drained({ res, clock, patienceUs }: Pick<Exchange, 'res'> & Pick<JobFileDeps, 'clock' | 'patienceUs'>) {
  return new Promise<void>((resolve) => {
    const forget = clock.at(clock.now() + patienceUs, () => res.destroy())
    const end = (): void => {
      forget()
      res.off('drain', end)
      res.off('close', end)
      resolve()
    }
    res.on('drain', end)
    res.on('close', end)
  })
}

const tooLarge = (bytesMax: number) =>
  invalidRequest(`The file is over the limit of ${bytesMax} bytes.`, 'file', 'request-too-large')

const unreadable = (why: string) => invalidRequest(`The form could not be read: ${why}.`, null, 'invalid-file')
