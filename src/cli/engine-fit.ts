import { type Command, type FlagValues, JSON_FLAG, textFlag, UsageError } from './command.ts'
import type { Told } from './fs-calibrate.ts'

export const engineFitCommand: Command = {
  name: 'engine fit',
  summary: 'fit a GPU profile to step times that you measured',
  about:
    '--steps has a row per step that was timed alone: model, prefill_tokens, prefill_context, decode_batch,\n' +
    'decode_context (per sequence), step_ms. The fit of the kernels is checked on rows that were left out of it.\n' +
    '--served and --requests are the recording of an engine at work, and the fit is what the engine adds to its kernels\n' +
    '(those of --steps, else of --like): workload, start_s, prefill_tokens, decode_batch, decode_context_sum, step_ms; and\n' +
    'workload, arrival_s, prompt_tokens, output_tokens, ttft_s, e2e_s. Record below, at and above the rate where the queue\n' +
    'begins to grow: a warning says what a recording cannot tell. --json also prints the profile; save it for\n' +
    '"spillway engine --profile FILE.json", and try it on another recording with "spillway engine validate".',
  flags: {
    steps: { type: 'string', value: 'FILE.csv', meaning: 'steps that were timed alone' },
    served: { type: 'string', value: 'FILE.csv', meaning: 'steps of an engine at work' },
    requests: { type: 'string', value: 'FILE.csv', meaning: 'requests of the same recording, with --served' },
    like: {
      type: 'string',
      value: 'PROFILE',
      meaning: 'take memory, price and kernels from this profile (default h200-llama-8b)',
    },
    json: JSON_FLAG,
  },
  examples: [
    'spillway engine fit --steps steps.csv',
    'spillway engine fit --steps steps.csv --like h100-llama-8b --json',
    'spillway engine fit --served served-steps.csv --requests requests.csv --like h200-llama-8b --json',
  ],
  async run(flags, io) {
    const told = await fitOf(flags)
    for (const warning of told.warnings ?? []) io.err(`spillway: ${warning}`)
    io.out(flags['json'] === true ? JSON.stringify(told.json) : told.text)
    return 0
  },
}

async function fitOf(flags: FlagValues): Promise<Told> {
  const stepsPath = textFlag(flags, 'steps')
  const servedPath = textFlag(flags, 'served')
  const requestsPath = textFlag(flags, 'requests')
  const like = textFlag(flags, 'like') ?? 'h200-llama-8b'
  const { fitFile, fitServedFiles } = await import('./fs-calibrate.ts')
  if (servedPath !== undefined && requestsPath !== undefined) {
    return fitServedFiles({ servedPath, requestsPath, stepsPath, like })
  }
  if (servedPath !== undefined) {
    throw new UsageError('--requests is missing. Give the requests of the recording: they say who was in each step.')
  }
  if (requestsPath !== undefined) throw new UsageError('--served is missing. Give the steps that served --requests.')
  if (stepsPath === undefined) {
    throw new UsageError('--steps is missing. Give the file with the measured steps, or a recording with --served.')
  }
  return fitFile(stepsPath, like)
}
