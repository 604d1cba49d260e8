/** Runs of this many words are what two texts share. */
const RUN_WORDS = 5
/** A run in more texts than this is a phrase of everybody's, and joins nobody. */
const RUN_TEXTS_MAX = 400

/**
 * Which texts are near-duplicates? Those that share over 30 % of the shorter one's 5-word runs are joined, and what is
 * joined to one of them too. Gives each text the number of its cluster. Shorter texts are joined when they are equal.
 */
export function clusterTexts(texts: readonly string[], shareMin = 0.3): number[] {
  const parents = texts.map((_, index) => index)
  const find = (at: number): number => {
    let root = at
    while (parents[root] !== root) root = parents[root] as number
    parents[at] = root
    return root
  }
  const runs = texts.map((text) => runsOf(text))
  const holders = new Map<string, number[]>()
  for (const [index, own] of runs.entries()) {
    for (const run of own) {
      const found = holders.get(run)
      if (found === undefined) holders.set(run, [index])
      else if (found.length < RUN_TEXTS_MAX) found.push(index)
    }
  }
  for (const [index, own] of runs.entries()) {
    const shared = new Map<number, number>()
    for (const run of own) {
      for (const other of holders.get(run) ?? []) {
        if (other < index) shared.set(other, (shared.get(other) ?? 0) + 1)
      }
    }
    for (const [other, count] of shared) {
      if (count > shareMin * Math.min(own.size, (runs[other] as Set<string>).size)) parents[find(index)] = find(other)
    }
  }
  return parents.map((_, index) => find(index))
}

function runsOf(text: string): Set<string> {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  if (words.length < RUN_WORDS) return new Set([words.join(' ')])
  const runs = new Set<string>()
  for (let at = 0; at + RUN_WORDS <= words.length; at++) runs.add(words.slice(at, at + RUN_WORDS).join(' '))
  return runs
}
