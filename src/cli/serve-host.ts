import { LiveClock } from '../base/live-clock.ts'
import type { Io, Running } from '../base/running.ts'
import type { SecretFile } from '../config/schema.ts'
import { describeReload } from '../control/describe-reload.ts'
import type { LiveSupervisor, SupervisorOptions } from '../host/live-supervisor.ts'
import type { Served } from '../main/serve.ts'
import { explainFailure } from './explain-failure.ts'
import { FileWatch, SecretWatch } from './fs-watch-file.ts'
import { runUntilSignal, type StopSignal } from './run-until-signal.ts'

/** A host with several processes, as `spillway serve` runs it. */
export interface HostRun extends Pick<SupervisorOptions, 'config' | 'processCount' | 'io' | 'settings'> {
  /** The file that is taken up whenever it changes, and its text at the start. */
  readonly watched: string | undefined
  readonly taken: string | undefined
  /** Files with secrets, and what they were at the start. */
  readonly secrets: { readonly files: readonly SecretFile[]; readonly taken: string | undefined }
  readonly reloadSignals: readonly NodeJS.Signals[]
  readonly stopSignals: readonly StopSignal[]
}

/** SIGUSR1 would open Node's debugger; for a supervisor it means a rolling restart. */
const RESTART_SIGNAL = 'SIGUSR1'

/** A host whose processes cannot start ends with the code that means so to init systems (EX_SOFTWARE). */
const LOST_CODE = 70

export async function superviseUntilSignal(run: HostRun): Promise<number> {
  const { config, processCount, io, settings, watched, taken, secrets, reloadSignals, stopSignals } = run
  let isLost = false
  const start = async (): Promise<Running> => {
    const clock = new LiveClock()
    const { LiveSupervisor } = await import('../host/live-supervisor.ts')
    const onLost = (because: string): void => {
      isLost = true
      io.err(`spillway: ${because}`)
      process.kill(process.pid, 'SIGTERM')
    }
    const supervisor = await LiveSupervisor.start({ config, processCount, io, clock, settings, onLost })
    const reload = (because: string) => () => void tellReload(supervisor, io, because)
    const listeners: Array<readonly [NodeJS.Signals, () => void]> = [
      ...reloadSignals.map((signal) => [signal, reload(signal)] as const),
      [RESTART_SIGNAL, () => void supervisor.restart()],
    ]
    for (const [signal, listener] of listeners) process.on(signal, listener)
    const onChange = reload('the file changed')
    const watch = watched === undefined ? undefined : new FileWatch({ path: watched, clock, taken, onChange })
    const secretWatch = new SecretWatch({ clock, ...secrets, onChange: reload('a secret changed') })
    return {
      address: supervisor.address,
      close() {
        watch?.stop()
        secretWatch.stop()
        for (const [signal, listener] of listeners) process.off(signal, listener)
        return supervisor.close()
      },
    }
  }
  const code = await runUntilSignal(start, undefined, undefined, stopSignals)
  return isLost ? LOST_CODE : code
}

async function tellReload(supervisor: LiveSupervisor, io: Io, because: string): Promise<void> {
  try {
    const answer = (await supervisor.reload(because)) as ReloadAnswer
    const said = answer.kind === 'refused' ? answer.refusal.because : describeReload(answer.reload)
    io.err(`spillway: read the configuration again (${because}): ${said}`)
  } catch (error) {
    for (const line of explainFailure(error).lines) io.err(`spillway: ${line}`)
  }
}

type ReloadAnswer = Awaited<ReturnType<Served['reload']>>
