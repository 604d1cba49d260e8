import type { Entry, Settled } from '../domain/entry.ts'
import type { GatewayQuestion } from '../domain/gateways.ts'
import { shownEntry } from '../gateway/routes/explain.ts'
import type { LiveTelemetry } from '../telemetry/live-telemetry.ts'

/**
 * What a gateway remembers of requests, asked of all gateways of the cell: a request was served by one of them, and the
 * client does not know by which. Who may see it is decided where it was asked, as for the gateway's own requests.
 */
export type AskOthers = (
  kind: string,
  body: unknown,
  isEnough: (answers: readonly string[]) => boolean,
) => Promise<readonly string[]>

type Remembering = Pick<LiveTelemetry, 'storyOf' | 'refusals'>

/** The story of a ticket, as this gateway or another one has it. */
export async function storyAnywhere(
  telemetry: Remembering,
  askOthers: AskOthers,
  ticketId: string,
): Promise<readonly Entry[] | undefined> {
  const own = telemetry.storyOf(ticketId)
  if (own !== undefined) return own
  const [answer] = await askOthers('story', { ticketId }, (answers) => answers.length > 0)
  return answer === undefined ? undefined : readList<Entry>(answer)
}

/** The last refusals of all gateways, the newest first. */
export async function refusalsAnywhere(
  telemetry: Remembering,
  askOthers: AskOthers,
  ask: Parameters<Remembering['refusals']>[0],
): Promise<readonly Settled[]> {
  const answers = await askOthers('refusals', ask, () => false)
  const others = answers.flatMap((answer) => readList<Settled>(answer) ?? [])
  return [...telemetry.refusals(ask), ...others].sort((a, b) => b.at - a.at).slice(0, ask.limit)
}

/** Answers what another gateway asks; undefined: nothing is known here. */
export function answerFrom(
  telemetry: Remembering,
): (question: Pick<GatewayQuestion, 'kind' | 'body'>) => string | undefined {
  return ({ kind, body }) => {
    const { ticketId, tenantId, limit } = (body ?? {}) as Readonly<Record<string, unknown>>
    if (kind === 'story' && typeof ticketId === 'string') {
      const story = telemetry.storyOf(ticketId)
      return story && JSON.stringify(story.map(shownEntry))
    }
    if (kind !== 'refusals' || typeof limit !== 'number') return undefined
    const refusals = telemetry.refusals({ tenantId: typeof tenantId === 'string' ? tenantId : undefined, limit })
    return refusals.length === 0 ? undefined : JSON.stringify(refusals.map(shownEntry))
  }
}

/** Another gateway may be of another version: what is no list of entries is none. */
function readList<E extends Entry>(text: string): readonly E[] | undefined {
  const list: unknown = JSON.parse(text)
  const isEntry = (entry: unknown): boolean =>
    typeof (entry as { kind?: unknown } | null)?.kind === 'string' && typeof (entry as { at?: unknown }).at === 'number'
  return Array.isArray(list) && list.every(isEntry) ? (list as E[]) : undefined
}
