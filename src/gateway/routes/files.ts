import { isUtf8 } from 'node:buffer'
import { invalidRequest, type WireFault } from '../../wire/openai-error.ts'
import { wireFile, wireList } from '../../wire/vector-stores.ts'
import { collectBody } from '../collect-body.ts'
import type { Route } from '../http-server.ts'
import { answerCall, BodyFault, type CorporaDeps, type CorpusCall, pageOf, tokensOfBytes } from './corpora-answer.ts'

/** /v1/files: texts uploaded before they join a corpus. Text, Markdown and JSON Lines, in UTF-8. */
const FILE_BYTES_MAX = 32 * 1024 * 1024

export function fileRoutes(deps: CorporaDeps): Route[] {
  const route = (
    method: Route['method'],
    path: string,
    handle: (call: CorpusCall, rest: string) => Promise<unknown>,
  ): Route => ({
    method,
    path,
    handle: (exchange, rest) => answerCall(deps, exchange, method === 'POST', (call) => handle(call, rest)),
  })
  return [
    route('POST', '/v1/files', (call) => upload(deps, call)),
    route('GET', '/v1/files', async ({ exchange, tenantId }) => {
      const { words, ...page } = pageOf(exchange.req.url)
      const purpose = words.get('purpose') ?? undefined
      const { items, hasMore } = await deps.corpora.listFiles(tenantId, { ...page, purpose })
      return wireList(items.map(wireFile), hasMore)
    }),
    route('GET', '/v1/files/*', async ({ exchange, tenantId, rateLimits }, rest) => {
      const [id = '', word] = rest.split('/')
      if (word !== 'content') return wireFile(await deps.corpora.getFile(tenantId, id))
      exchange.send(200, 'text/plain; charset=utf-8', await deps.corpora.fileText(tenantId, id), rateLimits())
      return undefined
    }),
    route('DELETE', '/v1/files/*', async ({ tenantId }, id) => {
      await deps.corpora.deleteFile(tenantId, id)
      return { id, object: 'file', deleted: true }
    }),
  ]
}

async function upload(deps: CorporaDeps, { exchange, tenantId, hold }: CorpusCall): Promise<unknown> {
  const body = await collectBody(exchange, FILE_BYTES_MAX, 'multipart/form-data')
  if (body.kind === 'gone') throw new BodyFault(invalidRequest('The client has gone.', null))
  const form = body.kind === 'fault' ? body : await readForm(body.bytes, exchange.req.headers['content-type'] ?? '')
  if (form.kind === 'fault') throw new BodyFault(form.fault)
  const { name, purpose, text } = form
  hold(tokensOfBytes(Buffer.byteLength(text)))
  return wireFile(await deps.corpora.addFile(tenantId, { name, purpose, text }))
}

type Form =
  | { readonly kind: 'ok'; readonly name: string; readonly purpose: string; readonly text: string }
  | { readonly kind: 'fault'; readonly fault: WireFault }

async function readForm(bytes: Buffer, contentType: string): Promise<Form> {
  const fault = (message: string, param: string | null): Form => ({
    kind: 'fault',
    fault: invalidRequest(message, param, 'invalid-file'),
  })
  let form: FormData
  try {
    form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': contentType } }).formData()
  } catch {
    return fault('The form could not be read.', null)
  }
  const file = form.get('file')
  if (!(file instanceof File)) return fault("Missing required parameter: 'file'.", 'file')
  const content = Buffer.from(await file.arrayBuffer())
  if (!isUtf8(content)) {
    return fault("Invalid 'file': only text in UTF-8 can be read (text, Markdown, JSON Lines).", 'file')
  }
  const purpose = form.get('purpose')
  return {
    kind: 'ok',
    name: file.name.slice(0, 1_024) || 'file',
    purpose: typeof purpose === 'string' && purpose !== '' ? purpose.slice(0, 64) : 'assistants',
    text: content.toString('utf8'),
  }
}
