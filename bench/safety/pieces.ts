/** Cuts a text as a tokenizer of a language model would: words with their space, three digits, single marks. */
export const piecesOf = (text: string): string[] =>
  text.match(/ ?\p{L}{1,7}|\p{L}{1,4}| ?\p{N}{1,3}| ?[^\s\p{L}\p{N}]{1,3}|\s+/gu) ?? []
