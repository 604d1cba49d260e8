import type { ScreeningTerms } from '../domain/screening.ts'
import type { Tenant } from '../domain/tenant.ts'
import type { OpenBody, TransitBody } from '../domain/transit.ts'
import { FormHead } from '../wire/form-head.ts'
import type { WireFault } from '../wire/openai-error.ts'
import { boundaryOf, CRLF, readForm } from '../wire/read-form.ts'
import { collectBody } from './collect-body.ts'
import { type CollectDeps, screensOf } from './collect-screened.ts'
import type { Exchange } from './exchange.ts'
import { headerText } from './request-terms.ts'
import { type BodyAsk, type BodyScreens, beginScreening, binaryFault, type FoundInBody } from './screen-body.ts'
import { type ScreenWork, type TextScreen, withPauses } from './screen-text.ts'

/**
 * A form with files of a tenant with screens. Fields may stand behind files, so the form is held whole where others pass
 * through: it may be as large as any body (`server.bodyBytesMax`). Its fields and the heads of its parts are rewritten;
 * its files are marked `unscreened`. What stands before the first part and behind the last is left out.
 */
export interface FormAsk extends Pick<CollectDeps, 'bodyBytesMax' | 'rules'> {
  readonly tenant: Tenant
  readonly terms: ScreeningTerms
}

export type CollectedForm =
  | { readonly kind: 'ok'; readonly form: FormHead; readonly body: HeldForm; readonly found: FoundInBody }
  | { readonly kind: 'fault'; readonly fault: WireFault }
  | { readonly kind: 'gone' }

export async function collectScreenedForm(exchange: Exchange, ask: FormAsk): Promise<CollectedForm> {
  const { tenant, terms, bodyBytesMax, rules } = ask
  const wantedType = 'multipart/form-data'
  const collected = await collectBody(exchange, bodyBytesMax, { wantedType })
  if (collected.kind !== 'ok') return collected
  const contentType = exchange.req.headers['content-type'] ?? ''
  const session = headerText(exchange.req.headers['x-session-id']) || undefined
  const screened = await screenForm(
    screensOf(rules),
    { tenantId: tenant.id, terms, session, contentType },
    collected.bytes,
  )
  return exchange.res.destroyed ? { kind: 'gone' } : screened
}

/** With pauses in which everything else runs: a field may be as long as a body. */
export async function screenForm(
  screens: BodyScreens,
  ask: Omit<BodyAsk, 'dialect'> & { readonly contentType: string },
  bytes: Buffer,
): Promise<Exclude<CollectedForm, { readonly kind: 'gone' }>> {
  const { contentType, terms } = ask
  const read = readForm(bytes, contentType)
  if (read.kind === 'fault') return read
  const { text, found } = beginScreening(screens, { ...ask, dialect: 'transit' }, () => '')
  const rewritten = await withPauses(rewriteForm(bytes, read.parts, boundaryOf(contentType) ?? '', text))
  const unscreened = rewritten.hasFiles ? ['file'] : []
  const fault = binaryFault(terms, unscreened)
  if (fault !== undefined) return { kind: 'fault', fault }
  const form = new FormHead(contentType)
  form.take(rewritten.bytes)
  return { kind: 'ok', form, body: new HeldForm(rewritten.bytes, form), found: { ...found, unscreened } }
}

function* rewriteForm(
  bytes: Buffer,
  parts: ReadonlyArray<{ readonly fileName: string | undefined; readonly content: Buffer }>,
  boundary: string,
  screen: TextScreen,
): ScreenWork<{ readonly bytes: Buffer; readonly hasFiles: boolean }> {
  const delimiter = Buffer.from(`--${boundary}`)
  const out: Buffer[] = []
  let hasFiles = false
  let end = bytes.indexOf(delimiter)
  for (const { fileName, content } of parts) {
    const start = content.byteOffset - bytes.byteOffset
    // Between two contents stands a line end, the boundary, and the head of the next part.
    const headAt = bytes.indexOf(CRLF, bytes.indexOf(delimiter, end))
    const head = bytes.toString('utf8', headAt, start)
    out.push(Buffer.from(out.length === 0 ? '' : CRLF), delimiter, Buffer.from(yield* screen.replaceIn(head)))
    out.push(fileName === undefined ? Buffer.from(yield* screen.replaceIn(content.toString('utf8'))) : content)
    hasFiles ||= fileName !== undefined
    end = start + content.length
  }
  out.push(Buffer.from(CRLF), delimiter, Buffer.from(`--${CRLF}`))
  return { bytes: Buffer.concat(out), hasFiles }
}

/** A form that is in memory: it can be sent as often as there are attempts. */
class HeldForm implements TransitBody {
  readonly isUpload = false
  readonly canOpen = true
  readonly #bytes: Buffer
  readonly #form: FormHead

  constructor(bytes: Buffer, form: FormHead) {
    this.#bytes = bytes
    this.#form = form
  }

  get length(): number {
    return this.#bytes.length
  }

  open(model: string): OpenBody {
    const body = Buffer.concat(this.#form.namedIn(this.#bytes, model))
    return { length: body.length, pieces: inOnePiece(body), close: () => {} }
  }
}

async function* inOnePiece(body: Buffer): AsyncGenerator<Uint8Array> {
  yield body
}
