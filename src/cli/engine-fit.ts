import { type Command, JSON_FLAG, textFlag, UsageError } from './command.ts'

export const engineFitCommand: Command = {
  name: 'engine fit',
  summary: 'fit a GPU profile to step times that you measured',
  about:
    'The file has a row per measured step: model, prefill_tokens, prefill_context, decode_batch, decode_context (per\n' +
    'sequence), step_ms. The fit is checked on rows that were left out of it. --json also prints the profile; save it\n' +
    'for "spillway engine --profile FILE.json".',
  flags: {
    steps: { type: 'string', value: 'FILE.csv', meaning: 'measured steps' },
    like: {
      type: 'string',
      value: 'PROFILE',
      meaning: 'take memory and price from this profile (default h200-llama-8b)',
    },
    json: JSON_FLAG,
  },
  examples: [
    'spillway engine fit --steps steps.csv',
    'spillway engine fit --steps steps.csv --like h100-llama-8b --json',
  ],
  async run(flags, io) {
    const steps = textFlag(flags, 'steps')
    if (steps === undefined) throw new UsageError('--steps is missing. Give the file with the measured steps.')
    const { fitFile } = await import('./fs-calibrate.ts')
    const told = fitFile(steps, textFlag(flags, 'like') ?? 'h200-llama-8b')
    io.out(flags['json'] === true ? JSON.stringify(told.json) : told.text)
    return 0
  },
}
