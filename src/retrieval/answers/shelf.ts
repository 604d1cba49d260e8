import { hash } from 'node:crypto'
import type { AnswerAsk } from '../../lifecycle/ports.ts'
import type { Shelf } from './answer-store.ts'

/**
 * What must be equal before two questions are even compared. First everything that shapes an answer beside the question:
 * tenant, release, prompt version, corpus version. Then what an embedding is blind to: "at 5 mg" and "at 50 mg", "does"
 * and "does not", "increase" and "decrease" lie as near to each other as two wordings of one question do (measured:
 * docs/adr/0016). So the question's numbers, its negations and its words of direction are part of the name, and a
 * question that differs in one of them finds an empty shelf, however alike the rest is.
 *
 * The lengths make the name unambiguous: no choice of question can name another prompt's shelf, or another tenant's.
 */
export function shelfOf(ask: Omit<AnswerAsk, 'terms' | 'cancellation'>): Shelf {
  const { tenantId, releaseId, promptVersion, corpusVersion, question } = ask
  const parts = [tenantId, releaseId, promptVersion, corpusVersion, marksOf(question)]
  return { tenantId, name: hash('sha256', parts.map((part) => `${part.length}:${part}`).join(''), 'hex') }
}

/** The words that decide a question, in a fixed order. */
export function marksOf(question: string): string {
  const words = question.toLowerCase().match(WORD) ?? []
  const marks: string[] = []
  let negations = 0
  for (const word of words) {
    if (/\d/.test(word)) marks.push(word.replace(/,(?=\d{3})/g, ''))
    else if (NEGATIONS.has(word) || word.endsWith("n't")) negations++
    else {
      const stem = stemOf(word)
      if (SIDES.has(stem)) marks.push(stem)
    }
  }
  marks.sort()
  return `${marks.join(' ')}|${negations}`
}

/** Numbers keep their points and percent signs; apostrophes keep "isn't" one word. */
const WORD = /\d[\d.,]*\d%?|\d%?|[a-z][a-z'’]*/g

const NEGATIONS = new Set(
  'not no never without cannot neither nor none nobody nothing hardly except unlike lack lacks lacking absent absence exclude excluding'.split(
    ' ',
  ),
)

/** Pairs of words that reverse a question when swapped. */
const PAIRS = `increase decrease|rise fall|raise lower|higher lower|high low|more less|more fewer|most least|greater smaller|
  better worse|best worst|improve worsen|before after|pre post|earlier later|early late|first last|first second|start stop|
  begin end|open close|enable disable|allow deny|allow forbid|accept reject|include exclude|add remove|install uninstall|
  upgrade downgrade|buy sell|import export|male female|man woman|men women|boy girl|mother father|maternal paternal|
  child adult|children adults|young old|younger older|left right|upper lower|up down|inside outside|internal external|
  maximum minimum|max min|long short|longer shorter|fast slow|strong weak|hot cold|acute chronic|benign malignant|
  primary secondary|positive negative|gain lose|gain loss|win lose|profit loss|success failure|safe unsafe|safe dangerous|
  benefit harm|beneficial harmful|protect harm|prevent cause|effective ineffective|necessary unnecessary|normal abnormal|
  presence absence|above below|over under|north south|east west|summer winter|day night|public private|free paid|
  same different|all some|always sometimes|superior inferior|proximal distal|anterior posterior|systolic diastolic|
  inpatient outpatient|open laparoscopic|medical surgical|unilateral bilateral|single multiple|monotherapy combination`

const SIDES: ReadonlySet<string> = new Set(PAIRS.split(/[\s|]+/).map(stemOf))

/** A stem, good enough for the words above: increases, increased, increasing. */
function stemOf(word: string): string {
  return word.length > 4 ? word.replace(/(ing|ed|es|s|e|ly)$/, '') : word
}
