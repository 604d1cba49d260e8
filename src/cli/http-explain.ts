import { request } from 'undici'
import type { Entry, Settled, ShadowEnded } from '../domain/entry.ts'
import type { Placement } from '../domain/placement.ts'

/** The journal entries of one ticket, fetched from the running server and printed line by line. */
export interface Story {
  readonly id: string
  readonly entries: readonly Entry[]
}

export class ExplainError extends Error {
  override readonly name = 'ExplainError'
}

const TIMEOUT_MS = 5_000

export async function fetchStory(url: string, key: string, id: string): Promise<Story> {
  const address = `${url.replace(/\/+$/, '')}/spillway/requests/${encodeURIComponent(id)}`
  const response = await request(address, {
    headers: { authorization: `Bearer ${key}` },
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
  }).catch((error: NodeJS.ErrnoException) => {
    throw new ExplainError(
      `nothing answers at ${url} (${error.code ?? error.message}). Is "spillway serve" running there?`,
    )
  })
  const text = await response.body.text()
  const story = response.statusCode === 200 ? storyIn(text) : undefined
  if (story !== undefined) return story
  throw new ExplainError(`the server answered ${response.statusCode}: ${messageIn(text)}`)
}

/** Undefined when the text is no story: then the server is not Spillway. */
function storyIn(text: string): Story | undefined {
  try {
    const story = JSON.parse(text) as Partial<Story>
    return Array.isArray(story.entries) ? (story as Story) : undefined
  } catch {
    return undefined
  }
}

function messageIn(text: string): string {
  try {
    return String((JSON.parse(text) as { error?: { message?: string } }).error?.message ?? text)
  } catch {
    return text.slice(0, 200)
  }
}

export function tellStory(story: Story): string {
  const startAt = story.entries[0]?.at ?? 0
  return [story.id, ...story.entries.map((entry) => `${since(entry.at, startAt).padStart(9)}  ${tell(entry)}`)].join(
    '\n',
  )
}

const since = (at: number, startAt: number): string => `${((at - startAt) / 1_000).toFixed(1)} ms`
const ms = (us: number): string => `${Math.round(us / 1_000)} ms`

function tell(entry: Entry): string {
  switch (entry.kind) {
    case 'arrived':
      return `arrived${entry.origin === undefined ? '' : `, sent on from ${entry.origin}`}: ${entry.tenantId} asks ${entry.model} (${entry.band}, about ${entry.promptTokens} prompt tokens)`
    case 'admitted':
      return (
        `admitted to ${entry.poolId} (${entry.releaseId}) on rung ${entry.rung}: ${entry.because}; predicted wait ${ms(entry.predictedWaitUs)}, ` +
        `first token ${ms(entry.predictedTtftUs)}, end ${ms(entry.predictedFinishUs)}`
      )
    case 'retrieval-ended':
      return `retrieval ${entry.outcome}: ${entry.because}; ${entry.passageCount} passages after ${ms(entry.tookUs)} of ${ms(entry.budgetUs)}`
    case 'answer-looked-up':
      return `answer cache: ${entry.outcome}, ${entry.because}${entry.similarity === undefined ? '' : ` (similarity ${entry.similarity.toFixed(3)})`}`
    case 'granted':
      return `turn ${entry.attempt} at ${entry.replicaId} after ${ms(entry.waitedUs)}: ${entry.because}${tellPlacement(entry.placement)}`
    case 'attempt-ended':
      return `attempt ${entry.attempt} at ${entry.replicaId} (${entry.releaseId}) ${entry.ending}: ${entry.because}`
    case 'settled':
      return tellEnd(entry)
    case 'shadow-ended':
      return `shadow at ${entry.releaseId}: ${entry.outcome}${tellDifference(entry)}`
    case 'fault-seen':
      return `fault in ${entry.where}: ${entry.because}`
    default:
      return entry.kind
  }
}

/** The scores in the order of the scorers; scores under half a millisecond are left out. */
function tellPlacement(placement: Placement | undefined): string {
  if (placement === undefined) return ''
  const { partsUs, cachedTokens, aheadUs, roomCount, scoredCount } = placement
  const parts = Object.entries(partsUs).filter(([, us]) => Math.abs(us) >= 500)
  const predicted = parts.map(([name, us]) => `${name} ${ms(us)}`).join(' + ')
  const held = cachedTokens > 0 ? `, ${cachedTokens} prompt tokens cached` : ''
  const ahead = aheadUs === undefined ? '' : `, ${ms(aheadUs)} ahead of the next`
  const scored = scoredCount < roomCount ? ` (${scoredCount} scored)` : ''
  return ` [${predicted || 'nothing to wait for'}${held}${ahead}; ${roomCount} with room${scored}]`
}

function tellDifference({ difference, outputTokens, primaryOutputTokens }: ShadowEnded): string {
  const lengths = `, ${outputTokens} tokens for ${primaryOutputTokens}`
  if (difference === undefined) return lengths
  const same = difference.isEqual ? 'the same answer' : `${Math.round(difference.sameWordsRatio * 100)} % of its words`
  return `${lengths}, ${same}`
}

function tellEnd(entry: Settled): string {
  const { usage, arrivedAt, firstTokenAt, outcome, because, refusal } = entry
  const first = firstTokenAt === undefined ? '' : `, first token after ${ms(firstTokenAt - arrivedAt)}`
  const tokens = `${usage.promptTokens} prompt (${usage.cachedTokens} cached) and ${usage.outputTokens} output tokens`
  const back = refusal?.retryAfterUs === undefined ? '' : `; come back after ${ms(refusal.retryAfterUs)}`
  return `${outcome}: ${because}${back}; ${tokens}${first}`
}
