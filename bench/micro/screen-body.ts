import { toScreening } from '../../src/config/to-screening.ts'
import type { ScreeningTerms } from '../../src/domain/screening.ts'
import { screenBody } from '../../src/gateway/screen-body.ts'
import { makeFinders } from '../../src/safety/entity-finders.ts'
import { cpuUsOf, type Finding, tell } from './tell.ts'

/**
 * Claim: rewriting what a client sends (personal data and secrets, reading of the JSON included) costs at most 40 µs of CPU
 * time for each kilobyte, and a body of 128 kB stops the event loop for at most 2 ms at a time.
 *
 * Turns are timed on the wall between two pauses of the screening, the longest of each body. The least of 50 bodies is told:
 * a busy machine takes the processor away in between.
 * `node bench/micro/screen-body.ts`
 */
const PROSE = `A weir is a low wall across a river. It raises the level of the water upstream, so that boats can pass and mills
can turn. When the river rises, water flows over the top; nothing has to be opened or closed. Engineers measure the flow from
the height of the water above the crest: twice the height gives almost three times the flow. In 1833 a table of such figures
was printed for the first time, and 40 years later every canal company had one. The design is simple, cheap and safe.\n\n`
const VALUES = `We wrote to jane.doe@example.com and called +1 415-555-2671 twice. The card 4111 1111 1111 1111 was charged; the
refund goes to DE89 3704 0044 0532 0130 00. Our server at 192.168.10.24 answered at 10:45.\n`

const terms = toScreening({ pii: 'redact', secrets: 'redact' }) as ScreeningTerms
const screens = { finderOf: makeFinders(), isModel: (name: string) => name === 'sim', salt: 'salt' }
const ask = { dialect: 'chat', tenantId: 'shop', terms } as const

/** A chat of about this many bytes, in messages of this length. */
function chatOf(bytes: number, messageLength: number, text: string): Buffer {
  const content = text.repeat(Math.ceil(messageLength / text.length)).slice(0, messageLength)
  const count = Math.max(1, Math.round(bytes / messageLength))
  const messages = Array.from({ length: count }, (_, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content }))
  return Buffer.from(JSON.stringify({ model: 'sim', temperature: 0.7, stream: true, messages }))
}

/** Least of these rounds: what a busy machine disturbs least. */
const ROUNDS = 12

/** Microseconds of CPU time for a kilobyte. */
function costOf(bytes: Buffer): number {
  const calls = Math.max(20, Math.round(4_000_000 / bytes.length))
  let us = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++)
    us = Math.min(
      us,
      cpuUsOf(calls, () => void screenBody(screens, ask, bytes)),
    )
  return us / (bytes.length / 1_000)
}

/** The longest time without a pause, in milliseconds: of the body that was disturbed least. */
async function longestTurnMs(bytes: Buffer): Promise<number> {
  const longest: number[] = []
  for (let i = 0; i < 50; i++) {
    let from = 0
    let most = 0
    let isDone = false
    const watch = (): void => {
      most = Math.max(most, performance.now() - from)
      from = performance.now()
      if (!isDone) setImmediate(watch)
    }
    setImmediate(watch)
    from = performance.now()
    await screenBody(screens, ask, bytes)
    isDone = true
    longest.push(Math.max(most, performance.now() - from))
    await new Promise((resolve) => setImmediate(resolve))
  }
  return Math.min(...longest)
}

const findings: Finding[] = []
for (const [name, bytes] of [
  ['1 kB of prose', chatOf(1_000, 1_000, PROSE)],
  ['8 kB of prose in 8 messages', chatOf(8_000, 1_000, PROSE)],
  ['8 kB with values in 8 messages', chatOf(8_000, 1_000, VALUES + PROSE)],
  ['15 kB of prose in one message', chatOf(15_000, 15_000, PROSE)],
] as const)
  findings.push({ name: `${name}: a kilobyte`, value: costOf(bytes), unit: 'µs', below: 40 })
for (const [name, bytes] of [
  ['128 kB in one message', chatOf(128_000, 128_000, PROSE)],
  ['128 kB in messages of 1 kB', chatOf(128_000, 1_000, PROSE)],
  ['128 kB with values', chatOf(128_000, 128_000, VALUES + PROSE)],
] as const)
  findings.push({ name: `${name}: longest turn`, value: await longestTurnMs(bytes), unit: 'ms', below: 2 })
tell('screen-body', findings)
