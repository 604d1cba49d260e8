import type { Arrived, Settled } from '../domain/entry.ts'

/**
 * The format of a recording: JSON Lines. The first line is a header, then a line for each request that has ended, in the
 * order of their ends. Tokens, names and times only: no text, no key, no reason in free words.
 *
 *     {"spillway":"recording","version":1,"startedAt":"2026-11-15T20:38:49.000Z","blockTokens":16}
 *     {"atUs":81234,"tenant":"acme","model":"llama-8b","prompt":812,"output":143,"prefix":[7311,902],"outcome":"completed"}
 *     {"lost":12}      up to this many requests before this line are missing: a queue was full, or the disk
 *     {"end":true}     the recording was closed; without this line it was cut off
 *
 * Fields with their usual value are left out: `kind` chat, `band` standard, `rung` full, `n` 1, and all that are 0.
 * `sim/traces/recording.ts` reads it. A change that old readers would misread needs another version.
 */
export const RECORDING_VERSION = 1

/** Tokens that one name of a prefix stands for: the engine's block. */
export const RECORDING_BLOCK_TOKENS = 16

/** Replaces names of blocks and conversations by names that tell equal from different, and nothing else. */
export interface Renaming {
  blocks(hashes: readonly number[]): number[]
  session(hash: number): number
}

export function headerLine(startedAtMs: number): string {
  const startedAt = new Date(startedAtMs).toISOString()
  return line({
    spillway: 'recording',
    version: RECORDING_VERSION,
    startedAt,
    blockTokens: RECORDING_BLOCK_TOKENS,
  })
}

export const lostLine = (lost: number): string => line({ lost })

export const endLine = (): string => line({ end: true })

export interface RecordedRequest {
  readonly arrived: Arrived & { readonly shape: NonNullable<Arrived['shape']> }
  readonly settled: Settled
  /** Tokens of an answer that came from the answer cache; undefined when an engine answered. */
  readonly repeatedTokens: number | undefined
}

export function requestLine(request: RecordedRequest, startAt: number, renaming: Renaming): string {
  const { arrived, settled, repeatedTokens } = request
  const { shape } = arrived
  const { usage, arrivedAt, firstTokenAt } = settled
  // An engine counts what it was sent: of a whole prompt that is better than an estimate, of a trimmed one it is less.
  const isWhole = settled.rung === 'full' && usage.promptTokens > 0
  return line({
    atUs: arrivedAt - startAt,
    tenant: arrived.tenantId,
    model: arrived.model,
    kind: shape.kind === 'chat' ? undefined : shape.kind,
    band: arrived.band === 'standard' ? undefined : arrived.band,
    bid: shape.bid || undefined,
    prompt: isWhole ? usage.promptTokens : arrived.promptTokens,
    cached: usage.cachedTokens || undefined,
    max: shape.outputTokensMax,
    n: shape.choiceCount === 1 ? undefined : shape.choiceCount,
    output: repeatedTokens ?? usage.outputTokens,
    isRepeated: repeatedTokens === undefined ? undefined : true,
    passages: shape.passagesMax || undefined,
    stream: arrived.isStreamed ? undefined : false,
    session: shape.sessionHash === undefined ? undefined : renaming.session(shape.sessionHash),
    prefix: shape.prefixHashes.length === 0 ? undefined : renaming.blocks(shape.prefixHashes),
    deadlineUs: settled.deadlineAt - arrivedAt,
    outcome: settled.outcome,
    code: settled.refusal?.code,
    rung: settled.rung === 'full' ? undefined : settled.rung,
    servedModel: settled.servedModel === arrived.model ? undefined : settled.servedModel,
    ttftUs: firstTokenAt === undefined ? undefined : firstTokenAt - arrivedAt,
    endUs: settled.at - arrivedAt,
  })
}

const line = (fields: object): string => `${JSON.stringify(fields)}\n`
