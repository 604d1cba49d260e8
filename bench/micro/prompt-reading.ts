/**
 * Does reading a long prompt hold up everybody else?
 *
 * A simulated engine tokenizes prompts on the event loop. Prompts of 100 kB of several kinds are read and answered one
 * after the other while another party keeps asking for the loop; the most CPU time that passes between two of its turns
 * is the stall. (Not the time on the wall: other programs of this machine are not what is measured.) The tokenizer takes
 * as long as it takes; the claim is about the pauses. The median of several rounds counts: now and then a
 * collection of garbage falls into one.
 *
 *   node bench/micro/prompt-reading.ts [--json]
 */

import { breathe, makePromptReader } from '../../src/assembly/live-backends.ts'
import { SimulatedText } from '../../src/backends/simulated-text.ts'
import { Cancellation } from '../../src/base/cancellation.ts'
import { Rng } from '../../src/base/rng.ts'
import type { Plan } from '../../src/domain/plan.ts'
import type { Request } from '../../src/domain/request.ts'
import { type Finding, tell } from './tell.ts'

const BYTES = 100_000
const ROUNDS = 7
const STALL_MS_MAX = 20

const rng = Rng.stream(1, 'prompts')
const random = (count: number, make: () => string): string => Array.from({ length: count }, make).join('')
const word = (): string => random(3 + rng.below(8), () => String.fromCharCode(97 + rng.below(26)))
const ENGLISH =
  'The spillway lets water pass the dam when the reservoir is full; engineers size it for the worst flood. '

const KINDS: Readonly<Record<string, () => string>> = {
  English: () => `${rng.below(1e9)} ${ENGLISH.repeat(BYTES / ENGLISH.length)}`,
  'words that do not exist': () => random(BYTES / 7, () => `${word()} `).slice(0, BYTES),
  'Chinese at random': () => random(BYTES / 3, () => String.fromCharCode(0x4e00 + rng.below(5_000))),
  'letters at random, no blank': () => random(BYTES, () => String.fromCharCode(97 + rng.below(26))),
  blanks: () => ' '.repeat(BYTES),
  emoji: () => random(BYTES / 4, () => String.fromCodePoint(0x1f300 + rng.below(500))),
}

const CONTEXT = 1_000_000
const reader = await makePromptReader(CONTEXT)
const text = new SimulatedText({ reader, seed: 1, blockTokens: 16, contextTokensMax: CONTEXT })

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1_000
}

/** The longest pause between two turns of the event loop while `work` goes on, and what it took, in CPU time. */
async function stallOf(work: () => Promise<unknown>): Promise<{ stallMs: number; wholeMs: number }> {
  let isDone = false
  const from = cpuMs()
  const working = work().finally(() => {
    isDone = true
  })
  let stallMs = 0
  for (let last = from; !isDone; ) {
    await breathe()
    const now = cpuMs()
    stallMs = Math.max(stallMs, now - last)
    last = now
  }
  await working
  return { stallMs, wholeMs: cpuMs() - from }
}

async function answer(content: string): Promise<void> {
  const body = { model: 'm', messages: [{ role: 'user', content }] }
  const request = { text: { body }, choiceCount: 1 } as unknown as Request
  const plan = { keptSegments: [0], outputTokensMax: 1_000 } as unknown as Plan
  await text.scriptsFor(request, plan, new Cancellation())
}

const findings: Finding[] = []
for (const [kind, make] of Object.entries(KINDS)) {
  const rounds: Array<{ stallMs: number; wholeMs: number }> = []
  for (let round = 0; round < ROUNDS; round++) {
    const content = make()
    rounds.push(await stallOf(() => answer(content)))
  }
  const median = (of: (round: { stallMs: number; wholeMs: number }) => number): number =>
    rounds.map(of).toSorted((a, b) => a - b)[ROUNDS >> 1] as number
  findings.push({
    name: `${kind}: longest pause`,
    value: median(({ stallMs }) => stallMs),
    unit: 'ms',
    below: STALL_MS_MAX,
  })
  findings.push({ name: `${kind}: until it is read`, value: median(({ wholeMs }) => wholeMs), unit: 'ms' })
}
tell(`A prompt of ${BYTES / 1_000} kB holds the event loop for less than ${STALL_MS_MAX} ms at a time`, findings)
