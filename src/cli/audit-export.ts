import { type ChainEvent, readChainEvents } from '../audit/fs-read-events.ts'
import { readSubjectKeys } from '../audit/fs-subject-keys.ts'
import { openNames } from '../audit/open-names.ts'
import { AUDIT_KINDS } from '../domain/audit-event.ts'
import { FOLDER_FLAGS, foldersOf } from './audit-access.ts'
import { type Command, type FlagValues, textFlag, UsageError } from './command.ts'

/** `spillway audit export`: events as lines of JSON, for tools of others. */
interface Filter {
  readonly tenant: string | undefined
  readonly kinds: readonly string[]
  readonly fromMs: number
  readonly toMs: number
}

export const auditExportCommand: Command = {
  name: 'audit export',
  summary: 'events of the audit as lines of JSON',
  about:
    'One event a line, as it lies in its chain, oldest first in each. Names of end users and keys are sealed; with --names\n' +
    'they are opened, as long as their keys are kept. Reads files only: where a server runs, ask it to have the export\n' +
    'recorded: GET /admin/v1/audit.',
  flags: {
    tenant: { type: 'string', value: 'ID', meaning: 'only events about this tenant' },
    kind: { type: 'string', value: 'WORDS', meaning: 'only these kinds, with commas; "key" is all of key.*' },
    from: { type: 'string', value: 'TIME', meaning: 'as 2026-11-01 or 2026-11-01T12:00Z' },
    to: { type: 'string', value: 'TIME', meaning: 'up to and without this time' },
    names: { type: 'boolean', meaning: 'open the names of end users and keys' },
    ...FOLDER_FLAGS,
  },
  examples: [
    'spillway audit export --tenant shop --from 2026-11-01 > shop.jsonl',
    'spillway audit export --kind key,admin',
  ],
  async run(flags, io) {
    const filter = filterOf(flags)
    for (const folder of await foldersOf(flags)) {
      const keys = flags['names'] === true ? await readSubjectKeys(folder) : undefined
      for await (const events of readChainEvents(folder)) {
        const lines = events.flatMap((event) => chosen(event, filter, keys))
        // One write for a segment; a line each would be slow.
        if (lines.length > 0) io.out(lines.join('\n'))
      }
    }
    return 0
  },
}

function filterOf(flags: FlagValues): Filter {
  const kinds = (textFlag(flags, 'kind') ?? '').split(',').filter((word) => word !== '')
  for (const word of kinds) {
    if (AUDIT_KINDS.some((kind) => isKind(kind, word))) continue
    throw new UsageError(`--kind has "${word}". Known: ${AUDIT_KINDS.join(', ')}.`)
  }
  return {
    tenant: textFlag(flags, 'tenant'),
    kinds,
    fromMs: timeOf(flags, 'from') ?? 0,
    toMs: timeOf(flags, 'to') ?? Number.POSITIVE_INFINITY,
  }
}

const isKind = (kind: string, word: string): boolean => kind === word || kind.startsWith(`${word}.`)

function timeOf(flags: FlagValues, name: string): number | undefined {
  const text = textFlag(flags, name)
  if (text === undefined) return undefined
  const time = Date.parse(/^\d{4}-\d{2}-\d{2}$/.test(text) ? `${text}T00:00Z` : text)
  if (Number.isNaN(time)) throw new UsageError(`--${name} is no time: ${text}. Try: 2026-11-01T12:00Z`)
  return time
}

function chosen({ text }: ChainEvent, filter: Filter, keys: ReadonlyMap<string, Buffer> | undefined): string[] {
  const { at, kind, tenant } = JSON.parse(text) as { at: number; kind: string; tenant?: string }
  if (at < filter.fromMs || at >= filter.toMs) return []
  if (filter.tenant !== undefined && tenant !== filter.tenant) return []
  if (filter.kinds.length > 0 && !filter.kinds.some((word) => isKind(kind, word))) return []
  return [keys === undefined ? text : JSON.stringify(openNames(text, keys))]
}
