import type { StepLoad } from '../step-time.ts'

/**
 * What was measured on a GPU, as CSV with a header line. Three shapes are known by their columns:
 *
 *   - single steps of each kind, timed alone (kernels):
 *     `model, prefill_tokens, prefill_context, decode_batch, decode_context` (per sequence)`, step_ms`
 *   - the steps of an engine that served a workload:
 *     `[workload,] start_s, prefill_tokens, decode_batch, decode_context_sum, step_ms, waiting`
 *   - the requests of that workload: `[workload,] arrival_s, prompt_tokens, output_tokens, ttft_s, e2e_s`
 *
 * Further columns are ignored. A file that cannot be read is an answer, not an exception: the line and what was
 * expected there.
 */
export interface BadCsv {
  readonly kind: 'bad-csv'
  /** Counted from 1; the header is line 1. */
  readonly line: number
  readonly because: string
}

/** Which of two files a complaint is about. */
export type BadFile = BadCsv & { readonly file: 'steps' | 'requests' }

export type StepKind = 'prefill' | 'decode' | 'mixed'

export interface MeasuredStep {
  readonly model: string
  readonly kind: StepKind
  readonly load: StepLoad
  readonly measuredUs: number
  /** The run it belongs to and when in it the step began, for steps of a served workload. */
  readonly workload: string
  readonly startUs: number
}

export interface StepFile {
  readonly kind: 'steps'
  /** `kernels`: each step timed alone. `served`: an engine at work. */
  readonly origin: 'kernels' | 'served'
  readonly steps: readonly MeasuredStep[]
}

export interface MeasuredRequest {
  readonly line: number
  /** Requests of different runs never met: each run has its own clock and its own engine. */
  readonly workload: string
  readonly arrivalUs: number
  readonly promptTokens: number
  readonly outputTokens: number
  readonly ttftUs: number
  readonly e2eUs: number
}

export interface RequestFile {
  readonly kind: 'requests'
  readonly requests: readonly MeasuredRequest[]
}

const KERNEL_COLUMNS = ['prefill_tokens', 'prefill_context', 'decode_batch', 'decode_context', 'step_ms'] as const
const SERVED_COLUMNS = ['start_s', 'prefill_tokens', 'decode_batch', 'decode_context_sum', 'step_ms'] as const
const REQUEST_COLUMNS = ['arrival_s', 'prompt_tokens', 'output_tokens', 'ttft_s', 'e2e_s'] as const

export function parseSteps(csv: string): StepFile | BadCsv {
  const header = cellsOf(csv.split('\n', 1)[0] as string)
  const isServed = header.includes('decode_context_sum')
  const rows = parseRows(csv, isServed ? SERVED_COLUMNS : KERNEL_COLUMNS)
  if (!Array.isArray(rows)) return rows
  const origin = isServed ? 'served' : 'kernels'
  return { kind: 'steps', origin, steps: rows.map(isServed ? servedStep : kernelStep) }
}

export function parseRequests(csv: string): RequestFile | BadCsv {
  const rows = parseRows(csv, REQUEST_COLUMNS)
  if (!Array.isArray(rows)) return rows
  const requests = rows.map(({ line, text, number }) => ({
    line,
    workload: text('workload'),
    arrivalUs: Math.round(number('arrival_s') * 1e6),
    promptTokens: number('prompt_tokens'),
    outputTokens: number('output_tokens'),
    ttftUs: number('ttft_s') * 1e6,
    e2eUs: number('e2e_s') * 1e6,
  }))
  return { kind: 'requests', requests: requests.sort((a, b) => a.arrivalUs - b.arrivalUs) }
}

function kernelStep({ text, number }: Row): MeasuredStep {
  const prefillTokens = number('prefill_tokens')
  const decodeCount = number('decode_batch')
  const context = number('decode_context')
  const load = {
    decodeCount,
    decodeTokens: decodeCount,
    contextSum: decodeCount * context,
    contextMax: decodeCount > 0 ? context : 0,
    prefillTokens,
    chunkPairs: (prefillTokens * prefillTokens) / 2,
    contextPairs: prefillTokens * number('prefill_context'),
  }
  return {
    model: text('model'),
    kind: kindOf(load),
    load,
    measuredUs: number('step_ms') * 1e3,
    workload: '',
    startUs: 0,
  }
}

/** Who is in the step is not written down; until somebody works it out, prompts have no context and none is longest. */
function servedStep({ text, number }: Row): MeasuredStep {
  const prefillTokens = number('prefill_tokens')
  const decodeCount = number('decode_batch')
  const load = {
    decodeCount,
    decodeTokens: decodeCount,
    contextSum: number('decode_context_sum'),
    contextMax: 0,
    prefillTokens,
    chunkPairs: (prefillTokens * prefillTokens) / 2,
    contextPairs: 0,
  }
  return {
    model: text('model'),
    kind: kindOf(load),
    load,
    measuredUs: number('step_ms') * 1e3,
    workload: text('workload'),
    startUs: number('start_s') * 1e6,
  }
}

function kindOf(load: StepLoad): StepKind {
  if (load.prefillTokens === 0) return 'decode'
  return load.decodeCount === 0 ? 'prefill' : 'mixed'
}

interface Row {
  readonly line: number
  /** A column as it stands; empty where the file has none of that name. */
  readonly text: (column: string) => string
  readonly number: (column: string) => number
}

function parseRows(csv: string, columns: readonly string[]): Row[] | BadCsv {
  const lines = csv.split('\n')
  const header = cellsOf(lines[0] as string)
  const missing = columns.filter((column) => !header.includes(column))
  if (missing.length > 0) {
    return {
      kind: 'bad-csv',
      line: 1,
      because: `expected the columns ${columns.join(', ')}; missing ${missing.join(', ')}`,
    }
  }
  const rows: Row[] = []
  for (let i = 1; i < lines.length; i++) {
    const line = lines[i] as string
    if (line.trim() === '') continue
    const cells = cellsOf(line)
    if (cells.length !== header.length) {
      return { kind: 'bad-csv', line: i + 1, because: `expected ${header.length} values, found ${cells.length}` }
    }
    for (const column of columns) {
      const cell = cells[header.indexOf(column)] as string
      if (cell === '' || !(Number(cell) >= 0)) {
        return {
          kind: 'bad-csv',
          line: i + 1,
          because: `expected a number of at least 0 for ${column}, found "${cell}"`,
        }
      }
    }
    const text = (column: string): string => cells[header.indexOf(column)] ?? ''
    rows.push({ line: i + 1, text, number: (column) => Number(text(column)) })
  }
  if (rows.length === 0) return { kind: 'bad-csv', line: 2, because: 'expected at least one row' }
  return rows
}

function cellsOf(line: string): string[] {
  return line.split(',').map((cell) => cell.trim())
}
