import type { Io } from '../base/running.ts'
import { type Command, type FlagValues, textFlag, UsageError } from './command.ts'
import { filePieces } from './fs-file-pieces.ts'
import { CORPUS_FLAGS } from './http-corpus-client.ts'
import { JobClient, type WireJob } from './http-job-client.ts'
import { ProgressLine } from './live-progress-line.ts'

const ENDED = ['completed', 'failed', 'expired', 'cancelled']
/** Mistakes of a file that are printed. */
const FAULTS_SHOWN = 10

function jobArgument(flags: FlagValues, command: string): string {
  const id = textFlag(flags, 'argument')
  if (id === undefined) throw new UsageError(`which job? Try: spillway ${command} batch_…`)
  return encodeURIComponent(id)
}

export const jobsSubmitCommand: Command = {
  name: 'jobs submit',
  summary: 'upload a file of requests and run it as a job',
  about:
    'Each line of the file is one request: {"custom_id": …, "method": "POST", "url": …, "body": {…}}. Lines run when there\n' +
    'is room, within a day. With --watch the command waits for the end; if it is stopped, the job goes on.',
  argument: 'FILE',
  flags: {
    endpoint: {
      type: 'string',
      short: 'e',
      value: 'PATH',
      meaning: 'what all lines ask (default /v1/chat/completions)',
    },
    watch: { type: 'boolean', short: 'w', meaning: 'show the progress until the job has ended' },
    ...CORPUS_FLAGS,
  },
  examples: ['spillway jobs submit night.jsonl --watch', 'spillway jobs submit texts.jsonl --endpoint /v1/embeddings'],
  async run(flags, io) {
    const path = textFlag(flags, 'argument')
    if (path === undefined) throw new UsageError('which file? Try: spillway jobs submit night.jsonl')
    const client = new JobClient(flags)
    const job = await client.call<WireJob>('POST', '/v1/batches', {
      input_file_id: await client.upload(filePieces(path)),
      endpoint: textFlag(flags, 'endpoint') ?? '/v1/chat/completions',
      completion_window: '24h',
    })
    if (flags['watch'] === true) return watch(client, job.id, flags, io)
    io.out(flags['json'] === true ? JSON.stringify(job) : describe(job))
    return 0
  },
}

export const jobsListCommand: Command = {
  name: 'jobs list',
  summary: 'show the jobs of a tenant, the newest first',
  about: 'Prints one line per job: id, state, lines, and when it will end at its present pace.',
  flags: {
    limit: { type: 'string', short: 'n', value: 'N', meaning: 'number of jobs (default 20, at most 100)' },
    ...CORPUS_FLAGS,
  },
  examples: ['spillway jobs list', 'spillway jobs list --limit 5 --json'],
  async run(flags, io) {
    const limit = Number(textFlag(flags, 'limit') ?? 20)
    const { data } = await new JobClient(flags).call<{ data: readonly WireJob[] }>('GET', `/v1/batches?limit=${limit}`)
    if (flags['json'] === true) io.out(JSON.stringify(data))
    else if (data.length === 0) io.out('No job yet. Make one: spillway jobs submit night.jsonl')
    else for (const job of data) io.out(describe(job))
    return 0
  },
}

export const jobsWatchCommand: Command = {
  name: 'jobs watch',
  summary: 'show the progress of a job until it has ended',
  about: 'Ends with 0 when the job is completed and no line failed, else with 1.',
  argument: 'JOB',
  flags: CORPUS_FLAGS,
  examples: ['spillway jobs watch batch_12ab…'],
  run: (flags, io) => watch(new JobClient(flags), jobArgument(flags, 'jobs watch'), flags, io),
}

export const jobsCancelCommand: Command = {
  name: 'jobs cancel',
  summary: 'begin no further line of a job',
  about: 'Lines that run may end; what is answered stays in the files.',
  argument: 'JOB',
  flags: CORPUS_FLAGS,
  examples: ['spillway jobs cancel batch_12ab…'],
  async run(flags, io) {
    const id = jobArgument(flags, 'jobs cancel')
    const job = await new JobClient(flags).call<WireJob>('POST', `/v1/batches/${id}/cancel`, {})
    io.out(flags['json'] === true ? JSON.stringify(job) : describe(job))
    return 0
  },
}

async function watch(client: JobClient, id: string, flags: FlagValues, io: Io): Promise<number> {
  const progress = new ProgressLine(process.stderr)
  for (;;) {
    const job = await client.call<WireJob>('GET', `/v1/batches/${id}`)
    const { total, completed, failed } = job.request_counts
    const done = completed + failed
    progress.show(job.status, total === 0 ? 0 : done / total, `${done} of ${total} lines${endText(job)}`)
    if (ENDED.includes(job.status)) {
      progress.clear()
      io.out(flags['json'] === true ? JSON.stringify(job) : describe(job))
      return job.status === 'completed' && failed === 0 ? 0 : 1
    }
    await client.pause()
  }
}

function endText({ spillway }: WireJob): string {
  if (spillway === undefined) return ''
  const at = new Date(spillway.expected_at * 1_000).toISOString().slice(0, 16).replace('T', ' ')
  return `, ends about ${at} UTC${spillway.is_late ? ', after its window' : ''}`
}

function describe(job: WireJob): string {
  const { total, completed, failed } = job.request_counts
  const files = [job.output_file_id, job.error_file_id].filter((id) => id !== null)
  const faults = (job.errors?.data ?? []).slice(0, FAULTS_SHOWN)
  return [
    `${job.id}  ${job.status}  ${completed} of ${total} lines answered, ${failed} failed${endText(job)}`,
    ...(files.length > 0 ? [`  answers: ${files.join(', ')}`] : []),
    ...faults.map(({ line, code, message }) => `  ${line === null ? '' : `line ${line}: `}${code}: ${message}`),
  ].join('\n')
}
