import { gpuProfileNames } from '../../src/engine/gpu-profiles.ts'
import {
  type Held,
  HiddenEngine,
  hiddenOptions,
  type LoopOptions,
  makeTwins,
  medianError,
  toldSpeed,
} from '../../test/support/hidden-engine.ts'
import { type Finding, tell } from './tell.ts'

/**
 * Claim: after a minute, a twin predicts the time per token of every built-in profile within 5 % and first tokens within
 * 15 %, in the median, though the profile is hidden from it and is not among its priors. Beside it, with `told`, what a
 * gateway says that is told the profile: the error that is left to it is the formula's and the load's, not the learning's.
 *
 * The engine is the simulated one, 1 to 48 in flight, prompts of up to 3,000 tokens, answers in single tokens. One minute
 * of learning (five for `reference-a100`, which answers once in two seconds), then a minute in which every prediction is
 * held against what came; two seeds, the worse one is shown.
 *
 *   node bench/micro/twin-accuracy.ts [--json]
 */
const SEEDS = [1, 2]
const LEARN_S = 60
const SLOW_LEARN_S = 300
const MEASURE_S = 60

function errorsOf(profile: string, options: Partial<LoopOptions>): { token: number; firstToken: number } {
  let worst = { token: 0, firstToken: 0 }
  for (const seed of SEEDS) {
    const engine = new HiddenEngine({
      engine: hiddenOptions(profile),
      twins: makeTwins(profile),
      seed,
      sequencesMax: 48,
      ...options,
    })
    engine.run(profile === 'reference-a100' ? SLOW_LEARN_S : LEARN_S)
    const from = engine.now
    engine.run(MEASURE_S)
    const percent = (held: readonly Held[]): number => 100 * medianError(held, from)
    worst = {
      token: Math.max(worst.token, percent(engine.tokens)),
      firstToken: Math.max(worst.firstToken, percent(engine.firstTokens)),
    }
  }
  return worst
}

const findings: Finding[] = gpuProfileNames().flatMap((profile) => {
  const learned = errorsOf(profile, {})
  const told = errorsOf(profile, { asked: toldSpeed(profile) })
  return [
    { name: `${profile}, per token`, value: learned.token, unit: '%', below: 5 },
    { name: `${profile}, per token, told`, value: told.token, unit: '%' },
    { name: `${profile}, first token`, value: learned.firstToken, unit: '%', below: 15 },
    { name: `${profile}, first token, told`, value: told.firstToken, unit: '%' },
  ]
})
tell('twins of hidden engines: median relative errors, the worse of two seeds', findings)
