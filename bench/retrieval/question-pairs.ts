/**
 * Pairs of questions, made mechanically from a set: some that ask the same in other words, and some that only look alike.
 * What a cache may answer alike, and what it must not.
 */
export interface Pair {
  readonly kind: string
  readonly isSame: boolean
  /** Was answered, and is asked. */
  readonly known: string
  readonly asked: string
}

const WRAPS = ['Please tell me: ', 'I would like to know: ', 'Quick question: ', 'Could you answer this? ']

const SYNONYMS: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bassociated with\b/i, 'linked to'],
  [/\bpatients\b/i, 'people'],
  [/\bpredict\b/i, 'forecast'],
  [/\baffect\b/i, 'influence'],
  [/\beffect\b/i, 'influence'],
  [/\buseful\b/i, 'helpful'],
  [/\btreatment\b/i, 'therapy'],
  [/\bimportant\b/i, 'relevant'],
  [/\bneed\b/i, 'require'],
  [/\brole\b/i, 'part'],
  [/\bphysicians\b/i, 'doctors'],
  [/\bchildren\b/i, 'kids'],
]

const OPPOSITES: ReadonlyArray<readonly [RegExp, string]> = [
  [/\bincreased?\b/i, 'decrease'],
  [/\breduced?\b/i, 'raise'],
  [/\bimproved?\b/i, 'worsen'],
  [/\bbefore\b/i, 'after'],
  [/\bafter\b/i, 'before'],
  [/\bhigh(er)?\b/i, 'low'],
  [/\blow(er)?\b/i, 'high'],
  [/\bmore\b/i, 'less'],
  [/\bbetter\b/i, 'worse'],
  [/\bearly\b/i, 'late'],
  [/\bpositive\b/i, 'negative'],
  [/\bwomen\b/i, 'men'],
  [/\bmen\b/i, 'women'],
  [/\bwith\b/i, 'without'],
  [/\bacute\b/i, 'chronic'],
  [/\bsafe\b/i, 'dangerous'],
]

export function makePairs(questions: readonly string[]): Pair[] {
  const rarity = wordCounts(questions)
  return questions.flatMap((question, i) => {
    const other = questions[(i + 1) % questions.length] as string
    const pairs: Array<Pair | undefined> = [
      same('said politely', question, `${WRAPS[i % WRAPS.length]}${lowerFirst(question)}`),
      same('written carelessly', question, question.toLowerCase().replace(/[?,:]/g, '').replace(/-/g, ' ')),
      same('mistyped', question, mistyped(question, rarity)),
      same('with synonyms', question, replaced(question, SYNONYMS)),
      different('another number', `${question} At 5 mg?`, `${question} At 50 mg?`),
      different('another number', question, replaced(question, [[/\d+/, String(i + 31)]])),
      different('negated', question, question.replace(/^(\w+) /, '$1 not ')),
      different('the opposite', question, replaced(question, OPPOSITES)),
      different('about something else', question, withWordOf(question, other, rarity)),
    ]
    return pairs.filter((pair) => pair !== undefined)
  })
}

const pair = (kind: string, isSame: boolean, known: string, asked: string): Pair | undefined =>
  known === asked ? undefined : { kind, isSame, known, asked }
const same = (kind: string, known: string, asked: string) => pair(kind, true, known, asked)
export const different = (kind: string, known: string, asked: string) => pair(kind, false, known, asked)

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)

function replaced(text: string, table: ReadonlyArray<readonly [RegExp, string]>): string {
  const found = table.find(([word]) => word.test(text))
  return found === undefined ? text : text.replace(found[0], found[1])
}

function wordsOf(text: string): string[] {
  return text.match(/[A-Za-z]{5,}/g) ?? []
}

function wordCounts(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const text of texts) for (const word of new Set(wordsOf(text))) counts.set(word, (counts.get(word) ?? 0) + 1)
  return counts
}

/** The word that says most of what a question is about. */
function rarest(text: string, counts: ReadonlyMap<string, number>): string | undefined {
  return wordsOf(text).toSorted((a, b) => (counts.get(a) ?? 0) - (counts.get(b) ?? 0) || b.length - a.length)[0]
}

function withWordOf(text: string, other: string, counts: ReadonlyMap<string, number>): string {
  const mine = rarest(text, counts)
  const theirs = rarest(other, counts)
  return mine === undefined || theirs === undefined ? text : text.replace(mine, theirs)
}

/** Two letters of its longest ordinary word change places. */
function mistyped(text: string, counts: ReadonlyMap<string, number>): string {
  const word = wordsOf(text).toSorted((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0))[0]
  if (word === undefined) return text
  return text.replace(word, `${word.slice(0, 2)}${word[3]}${word[2]}${word.slice(4)}`)
}
