import { isUtf8 } from 'node:buffer'
import { invalidRequest, type WireFault } from '../../wire/openai-error.ts'
import { readForm } from '../../wire/read-form.ts'
import { wireFile, wireList } from '../../wire/vector-stores.ts'
import { authenticate, NO_VALID_KEY } from '../authenticate.ts'
import { collectBody } from '../collect-body.ts'
import type { Exchange } from '../exchange.ts'
import type { Route } from '../http-server.ts'
import { type CorporaDeps, pageOf, respond } from './corpora-answer.ts'

/** /v1/files: texts uploaded before they join a corpus. Text, Markdown and JSON Lines, in UTF-8. */
const FILE_BYTES_MAX = 32 * 1024 * 1024

export function fileRoutes(deps: CorporaDeps): Route[] {
  const route = (
    method: Route['method'],
    path: string,
    handle: (exchange: Exchange, tenantId: string, rest: string) => Promise<unknown>,
  ): Route => ({
    method,
    path,
    async handle(exchange, rest) {
      const caller = authenticate(deps.keys, exchange)
      if (caller === undefined) exchange.sendRefusal(NO_VALID_KEY)
      else await respond(exchange, () => handle(exchange, caller.tenant.id, rest))
    },
  })
  return [
    route('POST', '/v1/files', (exchange, tenantId) => upload(deps, exchange, tenantId)),
    route('GET', '/v1/files', async (exchange, tenantId) => {
      const { words, ...page } = pageOf(exchange.req.url)
      const purpose = words.get('purpose') ?? undefined
      const { items, hasMore } = await deps.corpora.listFiles(tenantId, { ...page, purpose })
      return wireList(items.map(wireFile), hasMore)
    }),
    route('GET', '/v1/files/*', async (exchange, tenantId, rest) => {
      const [id = '', word] = rest.split('/')
      if (word !== 'content') return wireFile(await deps.corpora.getFile(tenantId, id))
      exchange.send(200, 'text/plain; charset=utf-8', await deps.corpora.fileText(tenantId, id))
      return undefined
    }),
    route('DELETE', '/v1/files/*', async (_, tenantId, id) => {
      await deps.corpora.deleteFile(tenantId, id)
      return { id, object: 'file', deleted: true }
    }),
  ]
}

async function upload(deps: CorporaDeps, exchange: Exchange, tenantId: string): Promise<unknown> {
  const body = await collectBody(exchange, FILE_BYTES_MAX, 'multipart/form-data')
  if (body.kind === 'gone') return undefined
  const form = body.kind === 'fault' ? body : readUpload(body.bytes, exchange.req.headers['content-type'] ?? '')
  if (form.kind === 'fault') {
    exchange.sendFault(form.fault)
    return undefined
  }
  const { name, purpose, text } = form
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
