import { type CancelTimer, type Clock, secondsToUs, usToSeconds } from '../../base/clock.ts'
import type { Replica } from '../../domain/fleet.ts'
import type { Backends, ReplicaReport } from '../ports.ts'

/**
 * What do the replicas say of themselves, when some of them say nothing?
 *
 * Each replica is asked by itself. A round asks every replica that is not being asked already, and waits for none of
 * them: a replica that accepts a connection and stays silent delays its own report and no other.
 *
 *     idle ─(a round)─▶ asked ─(an answer, or an error)─▶ reported ─▶ idle
 *                         └─(PROBE_US_MAX)─▶ overdue: reported as not ready ─(the answer at last)─▶ idle
 *
 * An overdue replica is asked again only when its open question has ended, so that questions never pile up. The late
 * answer itself is dropped: a replica that is always slower than the limit stays away instead of coming and going.
 *
 * A replica is known by the object that the fleet holds, not by its name: a replica that was removed, and another that
 * was added under the same name, are two, and the answer of the first says nothing of the second. The round is told
 * who is there, so a replica is asked from the first round after it was added, and never again once it was removed.
 *
 * What the probes do not do: judge a report (reports go to the control loop as they come), or end a question (the
 * backend bounds its own probe, `ports.ts`).
 *
 * Laws: L9 (in virtual time the order of reports is that of the questions).
 * Example: rounds at 0 s, 1 s, 2 s …; a replica falls silent at 0.5 s: it is asked at 1 s, reported as not ready at 6 s,
 * and asked again in the first round after its backend has given up.
 */

/** The longest probe makes two requests of at most 2 s each (`backends/http-get.ts`); one second is slack. */
export const PROBE_US_MAX = secondsToUs(5)

const OVERDUE: ReplicaReport = {
  isReady: false,
  because: `no answer to the probe in ${usToSeconds(PROBE_US_MAX)} s`,
}

export interface ProbesOptions {
  readonly clock: Clock
  readonly backends: Backends
  /** Called once for every question: with the answer, or in its place when the question is overdue. */
  readonly onReport: (replica: Replica, report: ReplicaReport) => void
}

/** An open question to one replica. */
interface Question {
  /** Resolves when the replica has reported, is overdue or was removed. */
  readonly reported: Promise<void>
  /** The answer is not wanted any more. */
  drop(): void
}

export class Probes {
  readonly #options: ProbesOptions
  readonly #open = new Map<Replica, Question>()

  constructor(options: ProbesOptions) {
    this.#options = options
  }

  /** Questions that have not ended, overdue ones included. */
  get openCount(): number {
    return this.#open.size
  }

  /** Begins a round over the replicas of the fleet as it is now. Resolves when each has reported or is overdue. */
  async ask(replicas: readonly Replica[]): Promise<void> {
    this.#dropAllBut(new Set(replicas))
    await Promise.all(replicas.map((replica) => (this.#open.get(replica) ?? this.#put(replica)).reported))
  }

  /** Nothing more is reported. */
  stop(): void {
    this.#dropAllBut(new Set())
  }

  #dropAllBut(present: ReadonlySet<Replica>): void {
    for (const [replica, question] of this.#open) {
      if (present.has(replica)) continue
      this.#open.delete(replica)
      question.drop()
    }
  }

  #put(replica: Replica): Question {
    const { clock } = this.#options
    const heard = Promise.withResolvers<ReplicaReport | undefined>()
    const answer = this.#answerOf(replica)
    const cancelLimit = clock.at(clock.now() + PROBE_US_MAX, () => heard.resolve(OVERDUE))
    const question: Question = {
      reported: this.#pass(replica, heard.promise, cancelLimit),
      drop: () => heard.resolve(undefined),
    }
    this.#open.set(replica, question)
    void answer.then((report) => {
      heard.resolve(report)
      if (this.#open.get(replica) === question) this.#open.delete(replica)
    })
    return question
  }

  async #answerOf(replica: Replica): Promise<ReplicaReport> {
    try {
      return await this.#options.backends.of(replica).probe(replica)
    } catch (error) {
      return { isReady: false, because: `the probe failed: ${String(error)}` }
    }
  }

  async #pass(replica: Replica, heard: Promise<ReplicaReport | undefined>, cancelLimit: CancelTimer): Promise<void> {
    const report = await heard
    cancelLimit()
    if (report !== undefined) this.#options.onReport(replica, report)
  }
}
