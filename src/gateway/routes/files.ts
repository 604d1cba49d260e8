import { isUtf8 } from 'node:buffer'
import { invalidRequest, type WireFault } from '../../wire/openai-error.ts'
import { readForm } from '../../wire/read-form.ts'
import { wireFile, wireList } from '../../wire/vector-stores.ts'
import { collectBody } from '../collect-body.ts'
import type { Route } from '../http-server.ts'
import { answerCall, BodyFault, type CorporaDeps, type CorpusCall, pageAskOf, tokensOfBytes } from './corpora-answer.ts'

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
    handle: (exchange, rest) =>
      answerCall(deps, exchange, { route: 'files', hasText: method === 'POST' }, (call) => handle(call, rest)),
  })
  return [
    route('POST', '/v1/files', (call) => upload(deps, call)),
    route('GET', '/v1/files', async ({ exchange, tenantId }) => {
      const { words, ...page } = pageAskOf(exchange.req.url)
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
  const body = await collectBody(exchange, FILE_BYTES_MAX, { wantedType: 'multipart/form-data' })
  if (body.kind === 'gone') throw new BodyFault(invalidRequest('The client has gone.', null))
  const form = body.kind === 'fault' ? body : readUpload(body.bytes, exchange.req.headers['content-type'] ?? '')
  if (form.kind === 'fault') throw new BodyFault(form.fault)
  const { name, purpose, text } = form
  hold(tokensOfBytes(Buffer.byteLength(text)))
  return wireFile(await deps.corpora.addFile(tenantId, { name, purpose, text }))
}

type Upload =
  | { readonly kind: 'ok'; readonly name: string; readonly purpose: string; readonly text: string }
  | { readonly kind: 'fault'; readonly fault: WireFault }

function readUpload(bytes: Buffer, contentType: string): Upload {
  const fault = (message: string, param: string | null): Upload => ({
    kind: 'fault',
    fault: invalidRequest(message, param, 'invalid-file'),
  })
  const form = readForm(bytes, contentType)
  if (form.kind === 'fault') return form
  const file = form.parts.find(({ name }) => name === 'file')
  if (file?.fileName === undefined) return fault("Missing required parameter: 'file'.", 'file')
  if (!isUtf8(file.content)) {
    return fault("Invalid 'file': only text in UTF-8 can be read (text, Markdown, JSON Lines).", 'file')
  }
  if (file.content.includes(0)) return fault("Invalid 'file': it has bytes of value 0, so it is no text.", 'file')
  const purpose = form.parts.find(({ name, fileName }) => name === 'purpose' && fileName === undefined)
  return {
    kind: 'ok',
    name: file.fileName.slice(0, 1_024) || 'file',
    purpose: purpose?.content.toString('utf8', 0, PURPOSE_BYTES_MAX).slice(0, 64) || 'assistants',
    text: file.content.toString('utf8'),
  }
}

/** 64 characters of four bytes. */
const PURPOSE_BYTES_MAX = 256
