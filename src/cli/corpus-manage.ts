import { type Command, textFlag, UsageError } from './command.ts'
import {
  CORPUS_FLAGS,
  CorpusClient,
  corpusArgument,
  pathOf,
  type WireCorpus,
  type WireHit,
} from './http-corpus-client.ts'

export const corpusListCommand: Command = {
  name: 'corpus list',
  summary: 'show the corpora of a tenant',
  about: 'Prints one line per corpus: name, id, documents and passages.',
  flags: CORPUS_FLAGS,
  examples: ['spillway corpus list', 'spillway corpus list --key sk-demo-globex'],
  async run(flags, io) {
    const corpora = await new CorpusClient(flags).list()
    if (flags['json'] === true) io.out(JSON.stringify(corpora))
    else if (corpora.length === 0) io.out('No corpus yet. Make one: spillway corpus add handbook --from docs/')
    else for (const corpus of corpora) io.out(describe(corpus))
    return 0
  },
}

function describe({ name, id, file_counts: counts, spillway }: WireCorpus): string {
  const left = counts.in_progress > 0 ? `, ${counts.in_progress} being indexed` : ''
  return `${name}  ${id}  ${counts.completed} documents, ${spillway.passages} passages${left}`
}

export const corpusSearchCommand: Command = {
  name: 'corpus search',
  summary: 'search a corpus and print the passages found',
  about: 'Runs the same search as a chat request: by words and by meaning.',
  argument: 'CORPUS',
  flags: {
    query: { type: 'string', short: 'q', value: 'TEXT', meaning: 'the question (required)' },
    top: { type: 'string', short: 'n', value: 'N', meaning: 'number of passages (default 5)' },
    ...CORPUS_FLAGS,
  },
  examples: ['spillway corpus search handbook --query "how do refunds work?"'],
  async run(flags, io) {
    const corpus = corpusArgument(flags, 'corpus search')
    const query = textFlag(flags, 'query')
    if (query === undefined) throw new UsageError('--query is missing. Give the text to search for.')
    const count = Number(textFlag(flags, 'top') ?? 5)
    const { data } = await new CorpusClient(flags).call<{ data: readonly WireHit[] }>(
      'POST',
      `${pathOf(corpus)}/search`,
      {
        query,
        max_num_results: count,
      },
    )
    if (flags['json'] === true) io.out(JSON.stringify(data))
    else if (data.length === 0) io.out('Nothing found.')
    else
      for (const { filename, score, content } of data) io.out(`${score.toFixed(3)}  ${filename}\n${content[0]?.text}\n`)
    return 0
  },
}

export const corpusDeleteCommand: Command = {
  name: 'corpus delete',
  summary: 'delete a corpus, or one document of it',
  about: 'Searches and caches no longer return it from then on.',
  argument: 'CORPUS',
  flags: { document: { type: 'string', value: 'ID', meaning: 'only this document' }, ...CORPUS_FLAGS },
  examples: ['spillway corpus delete handbook', 'spillway corpus delete handbook --document file-12ab'],
  async run(flags, io) {
    const corpus = corpusArgument(flags, 'corpus delete')
    const document = textFlag(flags, 'document')
    const path = document === undefined ? '' : `/files/${encodeURIComponent(document)}`
    await new CorpusClient(flags).call('DELETE', pathOf(corpus) + path)
    io.out(`Deleted ${document ?? corpus}.`)
    return 0
  },
}
