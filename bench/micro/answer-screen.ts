import type { Delta } from '../../src/domain/delta.ts'
import type { HoldMode, Screening } from '../../src/domain/screening.ts'
import { AnswerScreens } from '../../src/safety/answer-screen.ts'
import { embeddedAnswers } from '../../src/safety/embedded-answers.ts'
import { cpuUsOf, type Finding, tell } from './tell.ts'

/**
 * Claim: screening a streamed answer costs at most 1 µs of CPU time for each token, and holds 2 tokens on average and 16
 * at most, in the mode `entities`.
 *
 * Texts are cut into token-like pieces: a word with the blank before it, long words in parts of four letters, digits in
 * groups of three, each mark by itself. Tokens that are held: those that came and have not gone out whole.
 * `node bench/micro/answer-screen.ts`
 */
const PROSE = `A weir is a low wall across a river. It raises the level of the water upstream, so that boats can pass and mills
can turn. When the river rises, water flows over the top; nothing has to be opened or closed. Engineers measure the flow from
the height of the water above the crest: twice the height gives almost three times the flow. In 1833 a table of such figures
was printed for the first time, and 40 years later every canal company had one. The design is simple, cheap and safe.\n\n`

const WITH_VALUES = `Your order 88213 was sent on 2024-03-14. We wrote to jane.doe@example.com and called +1 415-555-2671 twice.
The card 4111 1111 1111 1111 was charged $52.10; the refund goes to DE89 3704 0044 0532 0130 00 within 3 days. Our server at
192.168.10.24 answered at 10:45. Please reply to support@example.org, or visit https://example.org/help?id=7 for more.\n\n`

const CODE = `function add(a: number, b: number): number {\n  return a + b\n}\n\nconst total = items.map((item) => item.price * 2)
  .filter((price) => price < limit_2)\nif (a<b && total[0] !== undefined) console.log(\`\${total[0]} of \${items.length}\`)\n\n`

const tokensOf = (text: string): string[] => text.match(/ ?[A-Za-z]{1,4}| ?\d{1,3}|\s+|./gs) ?? []

const screeningOf = (hold: HoldMode): Screening => ({
  terms: {
    version: 'bench',
    rules: (['pii', 'secrets'] as const).map((screen) => ({
      screen,
      direction: 'output' as const,
      action: 'redact' as const,
      onFailure: 'closed' as const,
    })),
    hold,
    join: 'gate',
    isReversible: false,
    allowed: [],
    patterns: [],
    binary: 'pass',
  },
  texts: [],
  found: [],
  unscreened: [],
})

const screens = new AnswerScreens(embeddedAnswers({ get: () => ({ scoreMin: 1, score: () => 0 }) }))
const deltasOf = (text: string): Delta[] =>
  tokensOf(text).map((content) => ({ tokens: 1, choices: [{ index: 0, content, finishReason: null }] }))

let sunk = 0
function stream(screening: Screening, deltas: readonly Delta[]): void {
  const screen = screens.of(screening)
  for (const delta of deltas) sunk += screen?.write(delta)?.tokens ?? 0
  sunk += screen?.flush()?.tokens ?? 0
}

/** How many tokens have come and are not out yet, after each token. */
function heldTokens(screening: Screening, deltas: readonly Delta[]): { mean: number; max: number } {
  const screen = screens.of(screening)
  const lengths: number[] = []
  let sum = 0
  let max = 0
  for (const delta of deltas) {
    lengths.push(delta.choices?.[0]?.content?.length ?? 0)
    void screen?.write(delta)
    let left = screen?.heldLength ?? 0
    let held = 0
    for (let i = lengths.length - 1; left > 0 && i >= 0; i--) {
      left -= lengths[i] as number
      held++
    }
    sum += held
    max = Math.max(max, held)
  }
  return { mean: sum / deltas.length, max }
}

const ROUNDS = 15
const findings: Finding[] = []
const texts = { prose: PROSE, 'prose with values': WITH_VALUES, code: CODE }
for (const [name, text] of Object.entries(texts)) {
  const deltas = deltasOf(text.repeat(4))
  const modes: Record<string, HoldMode> = {
    entities: { kind: 'entities' },
    'sentences:16': { kind: 'sentences', tokensMax: 16 },
    whole: { kind: 'whole' },
  }
  for (const [mode, hold] of Object.entries(modes)) {
    const screening = screeningOf(hold)
    let us = Number.POSITIVE_INFINITY
    for (let round = 0; round < ROUNDS; round++)
      us = Math.min(
        us,
        cpuUsOf(40, () => stream(screening, deltas)),
      )
    findings.push({ name: `${name}, ${mode}: a token`, value: us / deltas.length, unit: 'µs' })
    if (mode === 'whole') continue
    const { mean, max } = heldTokens(screening, deltas)
    findings.push({ name: `${name}, ${mode}: tokens held, mean`, value: mean, unit: '' })
    findings.push({ name: `${name}, ${mode}: tokens held, most`, value: max, unit: '' })
  }
}

tell('answer-screen', findings)
if (sunk === 0) throw new Error('nothing went out')
