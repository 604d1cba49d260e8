import { isUtf8 } from 'node:buffer'
import { wireJobFile } from '../../wire/batches.ts'
import { invalidRequest } from '../../wire/openai-error.ts'
import { wireFile, wireList } from '../../wire/vector-stores.ts'
import type { Route } from '../http-server.ts'
import {
  BodyFault,
  type CorporaDeps,
  type CorpusCall,
  callRoutesOf,
  pageAskOf,
  tokensOfBytes,
} from './corpora-answer.ts'
import { findJobFile, type JobFileDeps, NO_SNIFFING, removeJobFile, sendContent, takeUpload } from './job-files.ts'

/**
 * /v1/files: texts uploaded before they join a corpus (text, Markdown and JSON Lines, in UTF-8), and files of requests
 * and answers of jobs. The two rest in different places; a file's id says in which.
 */
const FILE_BYTES_MAX = 32 * 1024 * 1024

export interface FileDeps extends CorporaDeps {
  readonly jobFiles: JobFileDeps
}

export function fileRoutes(deps: FileDeps): Route[] {
  // What an upload is for stands in its form: what it costs is held when that is known.
  const route = callRoutesOf(deps, 'files')
  return [
    route('POST', '/v1/files', (call) => upload(deps, call)),
    route('GET', '/v1/files', (call) => list(deps, call)),
    route('GET', '/v1/files/*', async (call, rest) => {
      const { exchange, tenantId, rateLimits } = call
      const [id = '', word] = rest.split('/')
      const ours = await findJobFile(deps.jobFiles, tenantId, id)
      if (ours !== undefined) {
        if (word !== 'content') return wireJobFile(ours)
        await sendContent(deps.jobFiles, exchange, ours, rateLimits())
        return undefined
      }
      if (word !== 'content') return wireFile(await deps.corpora.getFile(tenantId, id))
      const text = await deps.corpora.fileText(tenantId, id)
      exchange.send(200, 'text/plain; charset=utf-8', text, [...NO_SNIFFING, ...rateLimits()])
      return undefined
    }),
    route('DELETE', '/v1/files/*', async ({ tenantId }, id) => {
      const ours = await findJobFile(deps.jobFiles, tenantId, id)
      if (ours === undefined) await deps.corpora.deleteFile(tenantId, id)
      else await removeJobFile(deps.jobFiles, ours)
      return { id, object: 'file', deleted: true }
    }),
  ]
}

const JOB_PURPOSES = ['batch', 'batch_output']

/** Files of jobs come first, then the others, each in their order. */
async function list({ corpora, jobFiles }: FileDeps, { exchange, tenantId }: CorpusCall): Promise<object> {
  const { words, ...page } = pageAskOf(exchange.req.url)
  const purpose = words.get('purpose') ?? undefined
  const isOther = purpose !== undefined && !JOB_PURPOSES.includes(purpose)
  const isBehind = page.after !== undefined && (await findJobFile(jobFiles, tenantId, page.after)) === undefined
  const ask = { ...page, after: page.after, purpose }
  const ours = isOther || isBehind ? undefined : await jobFiles.store.listFiles(tenantId, ask)
  const items: object[] = ours === undefined || ours === 'no-such-after' ? [] : ours.items.map(wireJobFile)
  const left = page.limit - items.length
  const isMore = ours !== undefined && ours !== 'no-such-after' && ours.hasMore
  if (isMore || (purpose !== undefined && !isOther)) return wireList(items as { id: string }[], isMore)
  const after = isBehind ? page.after : undefined
  const theirs = await corpora.listFiles(tenantId, { ...page, after, limit: Math.max(1, left), purpose })
  const more = theirs.items.slice(0, left).map(wireFile)
  return wireList([...items, ...more] as { id: string }[], theirs.hasMore || theirs.items.length > left)
}

async function upload({ corpora, jobFiles }: FileDeps, { exchange, tenantId, hold }: CorpusCall): Promise<unknown> {
  const onOther = (declaredBytes: number): void => hold(tokensOfBytes(declaredBytes))
  const taken = await takeUpload(jobFiles, exchange, tenantId, { otherBytesMax: FILE_BYTES_MAX, onOther })
  if (taken === undefined) return undefined
  if (taken.kind === 'job') return wireJobFile(taken.file)
  const { name, purpose, bytes } = taken
  const fault = (message: string): BodyFault => new BodyFault(invalidRequest(message, 'file', 'invalid-file'))
  if (!isUtf8(bytes)) throw fault("Invalid 'file': only text in UTF-8 can be read (text, Markdown, JSON Lines).")
  if (bytes.includes(0)) throw fault("Invalid 'file': it has bytes of value 0, so it is no text.")
  hold(tokensOfBytes(bytes.length))
  return wireFile(await corpora.addFile(tenantId, { name, purpose, text: bytes.toString('utf8') }))
}
