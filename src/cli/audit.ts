import { readCheckpointNotes, readTexts, splitNotes } from '../audit/fs-checkpoint-files.ts'
import { findRequest, proveEvent } from '../audit/fs-prove.ts'
import { type ChainReport, verifyChain } from '../audit/fs-verify.ts'
import { type MissingChain, missingChains } from '../audit/missing-chains.ts'
import { readCheckpoint, verifierKeyOf } from '../audit/signed-note.ts'
import { checkProof, readProof, writeProof } from '../audit/tlog-proof.ts'
import type { Io } from '../base/running.ts'
import {
  CHECKPOINTS_FLAG,
  FOLDER_FLAGS,
  foldersOf,
  givenCheckpoints,
  PUBLIC_KEY_FLAG,
  publicKeyOf,
} from './audit-access.ts'
import { auditEraseCommand } from './audit-erase.ts'
import { auditExportCommand } from './audit-export.ts'
import { columnsOf } from './columns.ts'
import { type Command, type FlagValues, JSON_FLAG, textFlag, UsageError } from './command.ts'
import { writeUsageFile } from './fs-usage-file.ts'
import { ProgressLine } from './live-progress-line.ts'

/** `spillway audit …`: is the record what it was? Offline, from its files. */
const PROBLEM = 1

const auditVerifyCommand: Command = {
  name: 'audit verify',
  summary: 'check every event of the audit, or one proof, offline',
  about:
    'Walks all chains of the audit and holds them against signed checkpoints. Finds events that were changed, removed or\n' +
    'moved, segments that are missing, a tail that was cut and a chain that was made again, and says at which event and in\n' +
    'which file. Checkpoints that lie beside the chain can be removed with it: give those that were kept elsewhere.\n' +
    'With PROOF, a file that "spillway audit prove" wrote, checks that alone. Exit code 1 where something is wrong.',
  argument: 'PROOF',
  flags: { checkpoints: CHECKPOINTS_FLAG, 'public-key': PUBLIC_KEY_FLAG, ...FOLDER_FLAGS, json: JSON_FLAG },
  examples: [
    'spillway audit verify',
    'spillway audit verify --folder /mnt/backup/audit --checkpoints kept.checkpoints',
    'spillway audit verify req_1.tlog-proof --public-key spillway/0+1f2e3d4c+AYEKFALV…',
  ],
  async run(flags, io) {
    const proof = textFlag(flags, 'argument')
    return proof === undefined ? verifyFolders(flags, io) : verifyProof(proof, flags, io)
  },
}

async function verifyFolders(flags: FlagValues, io: Io): Promise<number> {
  const folders = await foldersOf(flags)
  const { key, isGiven } = publicKeyOf(flags)
  const given = await givenCheckpoints(flags)
  const outside = given?.flatMap(splitNotes)
  const progress = new ProgressLine(process.stderr)
  const reports: ChainReport[] = []
  const all = [...(outside ?? [])]
  for (const folder of folders) {
    const own = await readCheckpointNotes(folder)
    all.push(...own.slice(-1))
    const origin = readCheckpoint(own.at(-1) ?? '')?.origin
    const notes = [...own, ...(outside ?? []).filter((note) => isOf(note, origin))]
    const onProgress = (ratio: number, events: number): void =>
      progress.show(folder, ratio, `${events} events${progress.timeLeft(ratio)}`)
    reports.push(await verifyChain({ folder, notes, publicKey: key, onProgress }))
  }
  progress.clear()
  const isOneChain = /\/\d+\/?$/.test(textFlag(flags, 'folder') ?? '')
  const missing = isOneChain ? [] : missingChains(reports, all, key)
  const isWhole = reports.every(isSound) && missing.length === 0
  if (flags['json'] === true) io.out(JSON.stringify({ isSound: isWhole, chains: reports, missing }))
  else io.out([...reports.map(describeReport), ...missing.map(describeMissing)].join('\n'))
  if (outside === undefined && flags['json'] !== true) {
    io.err('Only checkpoints beside the chain were used. Who can write there could have cut both: give --checkpoints.')
  }
  if (!isGiven && flags['json'] !== true)
    io.err('The key was read from the key file. Give the one that you kept: --public-key.')
  return isWhole ? 0 : PROBLEM
}

/** A chain that is gone leaves its checkpoints elsewhere without an owner; they are held against the one chain there is. */
const isOf = (note: string, origin: string | undefined): boolean =>
  origin === undefined || readCheckpoint(note)?.origin === origin

const isSound = ({ problems }: ChainReport): boolean => problems.length === 0

const describeMissing = ({ origin, size, atMs }: MissingChain): string =>
  `${origin}: not here\n  WRONG missing-chain: a checkpoint of ${new Date(atMs).toISOString()} says that it has ${size} events`

function describeReport({
  folder,
  first,
  last,
  segments,
  checkpointsHeld,
  checkpointsBefore,
  problems,
  tornTail,
}: ChainReport): string {
  const range = last === 0 ? 'no events' : `events ${first} to ${last}`
  const before = checkpointsBefore === 0 ? '' : `, ${checkpointsBefore} are of events past their retention`
  const head = `${folder}: ${range} in ${segments} segments, ${checkpointsHeld} checkpoints agree${before}`
  const lines = problems.map(
    ({ kind, event, file, because }) => `  WRONG ${kind} at event ${event} in ${file}: ${because}`,
  )
  const torn =
    tornTail === undefined ? [] : [`  note: ${tornTail.file}: ${tornTail.because}; the next start cuts it off`]
  return [problems.length === 0 ? `${head}. Sound.` : head, ...lines, ...torn].join('\n')
}

async function verifyProof(path: string, flags: FlagValues, io: Io): Promise<number> {
  const [text = ''] = await readTexts([path]).catch((error: Error) => {
    throw new UsageError(`${path} cannot be read: ${error.message}`)
  })
  const proof = readProof(text)
  if (proof === undefined) throw new UsageError(`${path} is no proof of an audit. "spillway audit prove" writes them.`)
  const verdict = checkProof(proof, publicKeyOf(flags).key)
  if (flags['json'] === true) io.out(JSON.stringify({ ...verdict, event: JSON.parse(proof.text) as unknown }))
  else if (verdict.kind === 'refused') io.out(`WRONG ${path}: ${verdict.because}`)
  else {
    const signed = new Date(verdict.signedAtMs).toISOString()
    io.out(`Proved: event ${proof.index + 1} of ${verdict.origin}, signed ${signed}.\n${proof.text}`)
  }
  return verdict.kind === 'proved' ? 0 : PROBLEM
}

const auditProveCommand: Command = {
  name: 'audit prove',
  summary: 'proof that the decision on a request is in the audit',
  about:
    'Writes the event of a request, log n hashes and a signed checkpoint, in C2SP’s form (tlog-proof). Whoever has the\n' +
    'public key can check it without the audit: "spillway audit verify FILE". It has nobody else’s events.',
  argument: 'REQUEST_ID',
  flags: {
    out: { type: 'string', short: 'o', value: 'FILE', meaning: 'the file to write (default: print it)' },
    'public-key': PUBLIC_KEY_FLAG,
    ...FOLDER_FLAGS,
    json: JSON_FLAG,
  },
  examples: ['spillway audit prove req_0190… --out req.tlog-proof'],
  async run(flags, io) {
    const id = textFlag(flags, 'argument')
    if (id === undefined) throw new UsageError('REQUEST_ID is missing. Try: spillway audit prove req_0190…')
    for (const folder of await foldersOf(flags)) {
      const event = (await findRequest(folder, id)).at(-1)
      if (event === undefined) continue
      const made = await proveEvent(folder, event)
      if (made === undefined) {
        io.err(`spillway: event ${event.seq} in ${folder} is not in a checkpoint yet. Try again in some seconds.`)
        return PROBLEM
      }
      const verdict = checkProof(made, publicKeyOf(flags).key)
      if (verdict.kind === 'refused') {
        io.err(`spillway: the proof does not hold: ${verdict.because}. Try: spillway audit verify --folder ${folder}`)
        return PROBLEM
      }
      const text = writeProof(made)
      const out = textFlag(flags, 'out')
      if (out !== undefined) writeUsageFile(out, text)
      const told = {
        chain: folder,
        event: event.seq,
        hashes: made.proof.length,
        ...(out !== undefined && { file: out }),
      }
      if (flags['json'] === true) io.out(JSON.stringify({ ...told, ...(out === undefined && { proof: text }) }))
      else
        io.out(
          out === undefined ? text.trimEnd() : `${out}: event ${event.seq}, ${made.proof.length} hashes. It holds.`,
        )
      return 0
    }
    io.err(`spillway: no event of the request ${id} is in the audit.`)
    return PROBLEM
  },
}

const auditCheckpointsCommand: Command = {
  name: 'audit checkpoints',
  summary: 'the signed checkpoints of the audit',
  about:
    'The newest of each chain, with the public key that signed it; with --all, every one in the form of signed notes.',
  flags: {
    all: { type: 'boolean', meaning: 'print every checkpoint, to keep elsewhere' },
    'public-key': PUBLIC_KEY_FLAG,
    ...FOLDER_FLAGS,
    json: JSON_FLAG,
  },
  examples: ['spillway audit checkpoints', 'spillway audit checkpoints --all > kept.checkpoints'],
  async run(flags, io) {
    const rows: string[][] = []
    const list: object[] = []
    const { key } = publicKeyOf(flags)
    for (const folder of await foldersOf(flags)) {
      const notes = await readCheckpointNotes(folder)
      if (flags['all'] === true && flags['json'] !== true) {
        if (notes.length > 0) io.out(notes.join('').trimEnd())
        continue
      }
      for (const note of flags['all'] === true ? notes : notes.slice(-1)) {
        const checkpoint = readCheckpoint(note)
        if (checkpoint === undefined) continue
        const { origin, size, root, chain, atMs, peers } = checkpoint
        const publicKey = verifierKeyOf(origin, key)
        list.push({
          origin,
          size,
          root: root.toString('base64'),
          chain: chain.toString('hex'),
          atMs,
          peers,
          publicKey,
          note,
        })
        rows.push([origin, String(size), new Date(atMs).toISOString(), root.toString('base64'), publicKey])
      }
    }
    if (flags['json'] === true) io.out(JSON.stringify(list))
    else if (flags['all'] !== true) io.out(columnsOf([['ORIGIN', 'EVENTS', 'SIGNED', 'ROOT', 'PUBLIC KEY'], ...rows]))
    return 0
  },
}

export const auditCommands: readonly Command[] = [
  auditVerifyCommand,
  auditProveCommand,
  auditExportCommand,
  auditCheckpointsCommand,
  auditEraseCommand,
]
