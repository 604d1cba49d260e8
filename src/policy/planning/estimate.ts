/** How many tokens is this text, near enough and at once? First version: four characters a token. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4)
}
