// The judge's evidence in words. Numbers are the judge's own (policy/rollout/judge.ts).

const QUESTIONS = {
  errors: ['Do more of its attempts fail?', 'pairs of attempts, one of each release'],
  refusals: ['Does it refuse more?', 'pairs of attempts'],
  ttft: ['Does its first token come later?', 'pairs of first tokens, each against its prediction'],
  'inter-token': ['Do its tokens come more slowly?', 'pairs of answers, each against its prediction'],
  cost: ['Does it cost more?', 'pairs of answers'],
  holdout: ['Does it score less on the holdout set?', 'items that both have answered'],
  broken: ['Do most of its attempts fail?', 'attempts by themselves'],
}

const whole = (value) => Math.round(value).toLocaleString('en')
/** JSON has no infinity: an account that has won everything comes as null. */
const odds = (value) => (value === null || value === undefined ? Number.POSITIVE_INFINITY : value)
const told = (value) =>
  Number.isFinite(value) ? `${value < 10 ? value.toFixed(1) : whole(value)} to 1` : 'beyond all doubt'

function stance(won, bound) {
  if (won >= bound) return ['yes, sure enough to roll back', 'bad']
  if (won > 10) return ['suspicious: no further step meanwhile', 'warn']
  return won > 2 ? ['a hint, no more', 'quiet'] : ['no sign of it', 'good']
}

/** A comparison: what is asked, the answer so far, how sure, how much was seen, and where it decides. */
export function evidenceInWords({ metric, pairs, won, wonInStep, bound, boundInStep, proven }) {
  const [question, unit] = QUESTIONS[metric] ?? [metric, 'comparisons']
  const [all, step] = [odds(won), odds(wonInStep)]
  const isStepAhead = step / boundInStep > all / bound
  const [best, limit] = isStepAhead ? [step, boundInStep] : [all, bound]
  const [answer, tone] = pairs === 0 ? ['nothing seen yet', 'quiet'] : stance(best, limit)
  const proof = proven === undefined || proven === null ? '' : `That it is not much slower: ${told(odds(proven))}.`
  return {
    question,
    answer,
    tone,
    seen: `${whole(pairs)} ${unit}`,
    odds: told(best),
    limit: `${whole(limit)} to 1${isStepAhead ? ', in this step' : ''}`,
    /** How far the bet has come on its way, 0 … 1: odds multiply, so the way is measured in logarithms. */
    way: Math.max(0, Math.min(1, Math.log(Math.max(1, best)) / Math.log(limit))),
    proof,
  }
}

const PHASES = {
  none: 'nothing is on trial',
  canary: 'the trial runs',
  promoted: 'the trial was won',
  'rolled-back': 'it was rolled back',
}
export const phaseInWords = (phase) => PHASES[phase] ?? phase

const VERDICTS = { 'roll-back': 'The judge rolls it back', promote: 'The judge would go on', wait: 'The judge waits' }
export const verdictInWords = (verdict) =>
  verdict ? `${VERDICTS[verdict.kind] ?? verdict.kind}: ${verdict.because}.` : ''
