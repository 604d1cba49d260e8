import { Rng } from '../../base/rng.ts'
import { BANDS, type Band } from '../../domain/tenant.ts'
import { RECORDING_VERSION } from '../../telemetry/recording-line.ts'
import { hasFields, parseJsonLine } from './json-line.ts'
import {
  LineFault,
  shown,
  type TraceFormat,
  type TraceLine,
  type TraceOptions,
  type TraceRequest,
  tokensOf,
} from './trace.ts'

/**
 * Recordings of a gateway (`spillway record`, `record.path`; the format is in `telemetry/recording-line.ts`). Requests
 * are written when they end and played by when they arrived, so a recording is read whole and sorted: memory is about
 * half a kilobyte a request.
 *
 * How long an answer would have been is not known of a request that was refused: such a request gets the length of an
 * answer that its tenant did get, drawn from the seed. Requests that no engine would have to answer are left out:
 * repeated answers of the answer cache, and those for models that do not generate text. What is drawn or left out is
 * counted in a note.
 */
export const recording: TraceFormat = {
  name: 'recording',
  example: '{"spillway": "recording", "version": 1, "startedAt": "2026-11-15T20:00:00.000Z", "blockTokens": 16}',
  claims: (firstLine) => hasFields(firstLine, ['spillway', 'version']),
  read: (lines, options) => requestsOf(readAll(lines), options),
}

interface Read {
  readonly requests: readonly RecordedAsk[]
  readonly lost: number
  readonly repeated: number
  readonly withoutText: number
  readonly isCut: boolean
  readonly isEnded: boolean
}

interface RecordedAsk {
  readonly atUs: number
  /** Undefined: the request got no answer. */
  readonly answeredTokens: number | undefined
  readonly request: Omit<TraceRequest, 'atUs' | 'outputTokens' | 'asked'> & Required<Pick<TraceRequest, 'asked'>>
}

interface Header {
  /** When the recording began, in microseconds after the first recording of the file. */
  readonly shiftUs: number
  readonly blockTokens: number
}

function readAll(lines: Iterable<TraceLine>): Read {
  const requests: RecordedAsk[] = []
  const counts = { lost: 0, repeated: 0, withoutText: 0, isCut: false, isEnded: false }
  let header: Header | undefined
  let firstMs: number | undefined
  for (const line of lines) {
    const fields = fieldsOf(line)
    if (fields === undefined) {
      counts.isCut = true
      break
    }
    if ('spillway' in fields) {
      const startedMs = startOf(line, fields)
      firstMs ??= startedMs
      header = { shiftUs: (startedMs - firstMs) * 1_000, blockTokens: blockTokensOf(line, fields) }
    } else if (header === undefined) throw new LineFault(line.number, 'a recording begins with its header.')
    else if ('lost' in fields) counts.lost += tokensOf(line, 'lost', fields['lost'])
    else if ('end' in fields) counts.isEnded = true
    else if (fields['isRepeated'] === true) counts.repeated++
    else if (!isGeneratedKind(line, fields['kind'])) counts.withoutText++
    else requests.push(askOf(line, fields, header))
  }
  return { requests: requests.sort((a, b) => a.atUs - b.atUs), ...counts }
}

/** A line that the end of the file cuts short is none: the gateway was stopped while it wrote. */
function fieldsOf(line: TraceLine): Readonly<Record<string, unknown>> | undefined {
  try {
    return parseJsonLine(line)
  } catch (error) {
    if (line.isUnended === true) return undefined
    throw error
  }
}

function startOf(line: TraceLine, { spillway, version, startedAt }: Readonly<Record<string, unknown>>): number {
  if (spillway !== 'recording') throw new LineFault(line.number, `this is ${shown(spillway)}, not a recording.`)
  if (version !== RECORDING_VERSION) {
    const advice = 'Read it with the Spillway that wrote it, or record again.'
    throw new LineFault(
      line.number,
      `a recording of version ${shown(version)}; this is ${RECORDING_VERSION}. ${advice}`,
    )
  }
  const ms = typeof startedAt === 'string' ? Date.parse(startedAt) : Number.NaN
  if (Number.isNaN(ms)) throw new LineFault(line.number, `startedAt is ${shown(startedAt)}, not a date.`)
  return ms
}

function blockTokensOf(line: TraceLine, { blockTokens }: Readonly<Record<string, unknown>>): number {
  const tokens = tokensOf(line, 'blockTokens', blockTokens)
  if (tokens > 4_096) throw new LineFault(line.number, `blockTokens is ${tokens}, longer than any engine's block.`)
  return tokens
}

function isGeneratedKind(line: TraceLine, kind: unknown): boolean {
  if (kind === undefined || kind === 'chat' || kind === 'completion') return true
  if (kind === 'embedding' || kind === 'tensors' || kind === 'transit') return false
  throw new LineFault(line.number, `kind is ${shown(kind)}, which is no kind of request.`)
}

function askOf(line: TraceLine, fields: Readonly<Record<string, unknown>>, header: Header): RecordedAsk {
  const promptTokens = tokensOf(line, 'prompt', fields['prompt'])
  const choiceCount = fields['n'] === undefined ? 1 : tokensOf(line, 'n', fields['n'])
  const output = fields['output'] === 0 ? undefined : tokensOf(line, 'output', fields['output'])
  const atUs = numberOf(line, 'atUs', fields['atUs']) + header.shiftUs
  if (atUs < 0) throw new LineFault(line.number, 'it was recorded before the lines above. Join files in order of time.')
  return {
    atUs,
    answeredTokens: output === undefined ? undefined : Math.max(1, Math.round(output / choiceCount)),
    request: {
      tenant: nameOf(line, 'tenant', fields['tenant']),
      promptTokens,
      prefixHashes: hashesOf(line, fields['prefix']),
      hashUnitTokens: header.blockTokens,
      asked: {
        model: nameOf(line, 'model', fields['model']),
        band: bandOf(line, fields['band']),
        bid: fields['bid'] === undefined ? 0 : numberOf(line, 'bid', fields['bid']),
        outputTokensMax: fields['max'] === undefined ? undefined : tokensOf(line, 'max', fields['max']),
        choiceCount,
        sessionHash: fields['session'] === undefined ? undefined : numberOf(line, 'session', fields['session']),
        deadlineUs: numberOf(line, 'deadlineUs', fields['deadlineUs']),
        cachedTokens: fields['cached'] === undefined ? 0 : tokensOf(line, 'cached', fields['cached']),
      },
    },
  }
}

function numberOf(line: TraceLine, field: string, value: unknown): number {
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw new LineFault(line.number, `${field} is ${shown(value)}, not a number.`)
}

function nameOf(line: TraceLine, field: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value
  throw new LineFault(line.number, `${field} is ${shown(value)}, not a name.`)
}

function bandOf(line: TraceLine, value: unknown = 'standard'): Band {
  const band = BANDS.find((each) => each === value)
  if (band !== undefined) return band
  throw new LineFault(line.number, `band is ${shown(value)}. Known: ${BANDS.join(', ')}.`)
}

function hashesOf(line: TraceLine, value: unknown): readonly number[] {
  if (value === undefined) return []
  if (Array.isArray(value) && value.every((hash) => Number.isSafeInteger(hash) && hash >= 0)) return value as number[]
  throw new LineFault(line.number, `prefix is ${shown(value)}, not a list of whole numbers.`)
}

function* requestsOf(read: Read, { factor, seed, note }: TraceOptions): Iterable<TraceRequest> {
  const firstUs = read.requests[0]?.atUs ?? 0
  const lengths = new KnownLengths(read.requests)
  let drawnCount = 0
  for (const { atUs, answeredTokens, request } of read.requests) {
    if (answeredTokens === undefined) drawnCount++
    yield {
      ...request,
      atUs: Math.round((atUs - firstUs) / factor),
      outputTokens: answeredTokens ?? lengths.draw(request, seed, drawnCount),
    }
  }
  if (read.isCut) note('its last line is cut short and was left out: the recording was not closed.')
  else if (!read.isEnded) note('it has no end: the recording was not closed, and its last requests may be missing.')
  if (read.lost > 0) note(`up to ${read.lost} requests are missing: the recorder had no room for them.`)
  if (read.repeated > 0) note(`${read.repeated} answers came from the answer cache and are left out.`)
  if (read.withoutText > 0) note(`${read.withoutText} requests for models that do not generate text are left out.`)
  if (drawnCount > 0) note(`${drawnCount} requests got no answer; their lengths are drawn from answers to the tenant.`)
}

/** Lengths of answers, by tenant, for requests that got none. */
class KnownLengths {
  readonly #byTenant = new Map<string, number[]>()
  readonly #all: number[] = []

  constructor(requests: readonly RecordedAsk[]) {
    for (const { answeredTokens, request } of requests) {
      if (answeredTokens === undefined) continue
      this.#all.push(answeredTokens)
      const known = this.#byTenant.get(request.tenant ?? '') ?? []
      known.push(answeredTokens)
      this.#byTenant.set(request.tenant ?? '', known)
    }
  }

  /** Within the client's bound; 1 where no answer of anybody is known. */
  draw({ tenant = '', asked }: RecordedAsk['request'], seed: number, nth: number): number {
    const known = this.#byTenant.get(tenant) ?? this.#all
    const drawn = known[Rng.stream(seed, `lengths/${tenant}/${nth}`).below(known.length)] ?? 1
    return Math.min(drawn, asked.outputTokensMax ?? drawn)
  }
}
