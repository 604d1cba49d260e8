import { type Command, type FlagValues, JSON_FLAG, numberFlag, textFlag, UsageError } from './command.ts'

export const engineValidateCommand: Command = {
  name: 'engine validate',
  summary: 'compare a GPU profile with measured steps and requests',
  about:
    'With --steps it prints the error of step times. With --requests it replays the arrivals through the engine and\n' +
    'compares time to first token, whole time, time per output token (mean, p50, p90, p95, p99) and throughput with what\n' +
    'was measured, run by run where the file has several. Errors are simulated ÷ measured − 1.',
  flags: {
    profile: { type: 'string', value: 'PROFILE', meaning: 'a name of the catalogue, or a FILE.json' },
    steps: { type: 'string', value: 'FILE.csv', meaning: 'measured steps' },
    requests: {
      type: 'string',
      value: 'FILE.csv',
      meaning: 'measured requests: arrival_s, prompt_tokens, output_tokens, ttft_s, e2e_s',
    },
    'max-seqs': { type: 'string', value: 'NUMBER', meaning: 'sequences in one batch' },
    'token-budget': { type: 'string', value: 'TOKENS', meaning: 'tokens computed in one step' },
    blocks: { type: 'string', value: 'NUMBER', meaning: 'blocks of keys and values' },
    'block-size': { type: 'string', value: 'TOKENS', meaning: 'tokens in a block' },
    json: JSON_FLAG,
  },
  examples: [
    'spillway engine validate --profile h200-llama-8b --steps steps.csv',
    'spillway engine validate --profile h200-llama-8b --requests requests.csv --blocks 40000',
    'spillway engine validate --profile h200-llama-8b --steps steps.csv --requests requests.csv --json',
  ],
  async run(flags, io) {
    const profile = textFlag(flags, 'profile')
    const stepsPath = textFlag(flags, 'steps')
    const requestsPath = textFlag(flags, 'requests')
    if (profile === undefined)
      throw new UsageError('--profile is missing. Give the name of a profile, as h200-llama-8b.')
    if (stepsPath === undefined && requestsPath === undefined)
      throw new UsageError('Nothing to compare with. Give measured steps (--steps), requests (--requests) or both.')
    const { validateFiles } = await import('./fs-calibrate.ts')
    const told = validateFiles({
      profile,
      stepsPath,
      requestsPath,
      limits: limitsOf(flags),
    })
    io.out(flags['json'] === true ? JSON.stringify(told.json) : told.text)
    return 0
  },
}

const COUNT = { min: 1, max: 1_000_000_000, isWhole: true }

function limitsOf(flags: FlagValues): Record<string, number> {
  const given = {
    sequencesMax: numberFlag(flags, 'max-seqs', COUNT),
    tokenBudget: numberFlag(flags, 'token-budget', COUNT),
    blockCount: numberFlag(flags, 'blocks', COUNT),
    blockTokens: numberFlag(flags, 'block-size', COUNT),
  }
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  )
}
