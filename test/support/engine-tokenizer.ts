import { loadO200kTokenizer } from '../../src/backends/o200k-tokenizer.ts'
import type { Tokenizer } from '../../src/backends/tokenizer.ts'

/** The real tokenizer, loaded once for all tests of a thread. */
let loading: Promise<Tokenizer> | undefined

export function realTokenizer(): Promise<Tokenizer> {
  loading ??= loadO200kTokenizer()
  return loading
}
