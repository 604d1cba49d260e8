import { US_PER_MS } from '../../base/clock.ts'
import { hasFields, parseJsonLine } from './json-line.ts'
import { LineFault, shown, type TraceFormat, type TraceLine, TraceTimes, tokensOf } from './trace.ts'

/** Mooncake's traces (FAST'25): requests with the names of their 512-token blocks, which show shared prefixes. */
const HASH_UNIT_TOKENS = 512

export const mooncake: TraceFormat = {
  name: 'mooncake',
  example: '{"timestamp": 0, "input_length": 900, "output_length": 52, "hash_ids": [0, 1]}',
  claims: (firstLine) => hasFields(firstLine, ['timestamp', 'input_length', 'output_length', 'hash_ids']),
  *read(lines, { factor }) {
    const times = new TraceTimes(factor)
    for (const line of lines) {
      const fields = parseJsonLine(line)
      const promptTokens = tokensOf(line, 'input_length', fields['input_length'])
      yield {
        atUs: times.next(line, 'timestamp', fields['timestamp'], US_PER_MS),
        promptTokens,
        outputTokens: tokensOf(line, 'output_length', fields['output_length']),
        prefixHashes: hashesOf(line, fields['hash_ids'], promptTokens),
        hashUnitTokens: HASH_UNIT_TOKENS,
      }
    }
  },
}

function hashesOf(line: TraceLine, value: unknown, promptTokens: number): number[] {
  if (!Array.isArray(value) || !value.every((hash) => Number.isSafeInteger(hash) && hash >= 0)) {
    throw new LineFault(line.number, `hash_ids is ${shown(value)}, not a list of whole numbers.`)
  }
  const unitsMax = Math.ceil(promptTokens / HASH_UNIT_TOKENS)
  if (value.length > unitsMax) {
    const why = `hash_ids names ${value.length} blocks, but ${promptTokens} tokens have at most ${unitsMax}.`
    throw new LineFault(line.number, why)
  }
  return value as number[]
}
