import type { Tokenizer } from './tokenizer.ts'

/**
 * OpenAI's o200k vocabulary, in JavaScript. It takes a hundred megabytes and a quarter of a second to load, so only
 * processes with a simulated engine load it.
 *
 * Decoding is our own, from the table of bytes, because the library's `decode` keeps half characters of one call for
 * the next.
 */
export async function loadO200kTokenizer(): Promise<Tokenizer> {
  const [{ encode }, { default: table }, { createO200KSpecialTokenMap }] = await Promise.all([
    import('gpt-tokenizer/encoding/o200k_base'),
    import('gpt-tokenizer/bpeRanks/o200k_base'),
    import('gpt-tokenizer/encodingParams/o200k_base'),
  ])
  const specials = createO200KSpecialTokenMap()
  const specialNames = new Map([...specials].map(([name, token]) => [token, name]))
  const encoder = new TextEncoder()
  // No special token is recognised: "<|im_end|>" in a prompt is ten ordinary characters.
  const plain = { disallowedSpecial: new Set<string>() }
  return {
    encode: (slice) => encode(slice, plain),
    has: (token) => table[token] !== undefined || specialNames.has(token),
    bytesOf(token) {
      const entry = table[token] ?? specialNames.get(token) ?? ''
      return typeof entry === 'string' ? encoder.encode(entry) : Uint8Array.from(entry)
    },
    frame: {
      messageStart: specials.get('<|im_start|>') as number,
      roleEnd: specials.get('<|im_sep|>') as number,
      messageEnd: specials.get('<|im_end|>') as number,
    },
  }
}
