import { type Command, numberFlag, textFlag, UsageError } from './command.ts'
import { ADMIN_FLAGS, serverAccessOf } from './http-admin-client.ts'
import { ProgressLine, wallMs } from './live-progress-line.ts'
import { untilSignal } from './until-signal.ts'

export const recordCommand: Command = {
  name: 'record',
  summary: 'record what a running server is asked, without a word of text, to play it again',
  about:
    'Writes a line to FILE for every request that ends: tenant, model, time, lengths, prefix names, outcome. There is no\n' +
    'text, key or reason in it, and prefix names cannot be traced back to text. Ctrl-C ends the recording. Play it with\n' +
    '"spillway simulate --replay FILE", size a fleet for it with "spillway plan --trace FILE". To record all the time,\n' +
    'set record.path in the configuration.',
  argument: 'FILE',
  flags: {
    ...ADMIN_FLAGS,
    duration: { type: 'string', value: 'SECONDS', meaning: 'end after this time (default: until Ctrl-C)' },
    requests: { type: 'string', value: 'N', meaning: 'end after this many requests' },
    size: { type: 'string', value: 'MB', meaning: 'end when the file has this size (default 1000)' },
  },
  examples: ['spillway record monday.jsonl', 'spillway record peak.jsonl --duration 3600 --url http://10.0.0.5:8080'],
  async run(flags, io) {
    const path = textFlag(flags, 'argument')
    if (path === undefined) throw new UsageError('which file? Try: spillway record monday.jsonl')
    const durationS = numberFlag(flags, 'duration', { above: 0, max: 604_800 })
    const requestsMax = numberFlag(flags, 'requests', { min: 1, isWhole: true }) ?? Number.POSITIVE_INFINITY
    const bytesMax = (numberFlag(flags, 'size', { above: 0, max: 1_000_000 }) ?? 1_000) * 1_000_000
    const access = serverAccessOf(flags)
    const { stopAfter, streamRecording } = await import('./http-record.ts')
    const { NewRecording } = await import('./fs-recording.ts')
    const file = new NewRecording(path)
    const signal = untilSignal()
    const timer = stopAfter(signal.stop, durationS)
    const progress = new ProgressLine(process.stderr)
    const startedMs = wallMs()
    let isEnded = false
    try {
      for await (const line of streamRecording(access, timer.stop)) {
        if (file.bytes === 0) io.err(`Recording ${access.url} into ${path}. Ctrl-C ends it.`)
        file.write(line)
        isEnded = line === END
        const tookS = (wallMs() - startedMs) / 1_000
        const detail = `${file.requests} requests, ${(file.bytes / 1e6).toFixed(1)} MB${file.lost > 0 ? `, ${file.lost} lost` : ''}`
        progress.show('recording', durationS === undefined ? 0 : tookS / durationS, detail)
        if (file.requests >= requestsMax || file.bytes >= bytesMax) break
      }
      // A recording that was ended on purpose is complete; one that broke off lacks this line.
      if (!isEnded && file.bytes > 0) file.write(END)
    } finally {
      progress.clear()
      timer.forget()
      signal.forget()
      file.close()
    }
    const { requests, bytes, lost } = file
    if (flags['json'] === true) io.out(JSON.stringify({ file: path, requests, bytes, lost }))
    else
      io.out(`${path}: ${requests} requests, ${(bytes / 1e6).toFixed(1)} MB${lost > 0 ? `, up to ${lost} lost` : ''}`)
    return 0
  },
}

const END = '{"end":true}'
