/** A text in the pieces that these cuts make; cuts beyond its end are left out. */
export function cutAt(text: string, cuts: readonly number[]): string[] {
  const at = [...new Set(cuts.filter((cut) => cut > 0 && cut < text.length))].sort((a, b) => a - b)
  const pieces: string[] = []
  let from = 0
  for (const cut of [...at, text.length]) {
    pieces.push(text.slice(from, cut))
    from = cut
  }
  return pieces
}
