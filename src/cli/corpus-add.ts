import type { Io } from '../base/running.ts'
import { type Command, type FlagValues, UsageError } from './command.ts'
import { documentsIn, type FoundDocument } from './fs-documents.ts'
import {
  CallRefused,
  CORPUS_FLAGS,
  CorpusClient,
  corpusArgument,
  pathOf,
  type WireCorpus,
} from './http-corpus-client.ts'
import { IndexingPace } from './indexing-pace.ts'
import { ProgressLine, wallMs } from './live-progress-line.ts'

/** Bounds of one call, far below the server's limit on bodies. */
const CALL_CHARACTERS_MAX = 1_000_000
const CALL_DOCUMENTS_MAX = 100

export const corpusAddCommand: Command = {
  name: 'corpus add',
  summary: 'add files or folders to a corpus, which is made if new, and show the indexing',
  about:
    'A text or Markdown file is one document; a JSON Lines file has one document per line\n' +
    '({"text": …, "name": …, "attributes": …}). A document that is there already is not stored twice, so an interrupted\n' +
    'run can be repeated. If this command is stopped, the server goes on indexing. Where the tenant has used up its\n' +
    'allowance of requests or tokens, the command waits for it.',
  argument: 'CORPUS',
  flags: {
    from: {
      type: 'string',
      short: 'f',
      value: 'PATH',
      meaning: 'a file or a folder; may be repeated',
      multiple: true,
    },
    ...CORPUS_FLAGS,
  },
  examples: ['spillway corpus add handbook --from docs/', 'spillway corpus add faq --from faq.jsonl --key sk-…'],
  async run(flags, io) {
    const corpus = corpusArgument(flags, 'corpus add')
    const paths = [flags['from'] ?? []].flat() as string[]
    if (paths.length === 0) throw new UsageError('--from is missing: which files? Try: --from docs/')
    const client = new CorpusClient(flags)
    if (!(await client.has(corpus))) await client.call('POST', '', { name: corpus })
    const count = await send(client, corpus, paths)
    if (count === 0) throw new UsageError(`nothing to read in ${paths.join(', ')} (text, Markdown, JSON Lines).`)
    return watch(client, corpus, flags, io)
  },
}

async function send(client: CorpusClient, corpus: string, paths: readonly string[]): Promise<number> {
  const progress = new ProgressLine(process.stderr)
  let waiting: FoundDocument[] = []
  let characters = 0
  let count = 0
  const onWait = (ms: number): void =>
    progress.show('sending', 0, `${count} documents; waiting ${Math.ceil(ms / 1_000)} s for the tenant's allowance`)
  const post = async (documents: readonly FoundDocument[]): Promise<void> => {
    try {
      await client.call('POST', `${pathOf(corpus)}/documents`, { documents }, onWait)
    } catch (error) {
      // More tokens than the allowance ever has: half of them may fit.
      const isTooMuch = error instanceof CallRefused && error.status === 429 && documents.length > 1
      if (!isTooMuch) throw error
      const half = Math.ceil(documents.length / 2)
      await post(documents.slice(0, half))
      await post(documents.slice(half))
      return
    }
    count += documents.length
    progress.show('sending', 0, `${count} documents`)
  }
  const flush = async (): Promise<void> => {
    if (waiting.length > 0) await post(waiting)
    waiting = []
    characters = 0
  }
  for (const path of paths) {
    for (const document of documentsIn(path)) {
      const isFull = characters + document.text.length > CALL_CHARACTERS_MAX || waiting.length >= CALL_DOCUMENTS_MAX
      if (isFull) await flush()
      waiting.push(document)
      characters += document.text.length
    }
  }
  await flush()
  progress.clear()
  return count
}

async function watch(client: CorpusClient, corpus: string, flags: FlagValues, io: Io): Promise<number> {
  const progress = new ProgressLine(process.stderr)
  const pace = new IndexingPace()
  for (;;) {
    const now = await client.call<WireCorpus>('GET', pathOf(corpus))
    const { completed, failed, total, in_progress: left } = now.file_counts
    const { passages, embedded } = now.spillway
    pace.observe(wallMs(), embedded)
    const text = `${completed} of ${total} documents, ${pace.textFor(embedded, passages)}`
    progress.show('indexing', embedded / Math.max(1, passages), text)
    if (left === 0) {
      progress.clear()
      const text = `${completed} documents, ${now.spillway.passages} passages in ${now.name}${failed > 0 ? `; ${failed} failed` : ''}`
      io.out(flags['json'] === true ? JSON.stringify(now) : text)
      return failed > 0 ? 1 : 0
    }
    await client.pause()
  }
}
