import type { CostClosed } from '../domain/cost-entry.ts'
import type { Entry, Granted, Settled, ShadowEnded } from '../domain/entry.ts'
import type { Placement } from '../domain/placement.ts'
import type { Trim } from '../domain/plan.ts'
import type { AnswerScreened, Screened } from '../domain/screening-entry.ts'
import { AdminRefused } from './command.ts'
import { askServer } from './http-server-client.ts'

/** The journal entries of one ticket, fetched from the running server and printed line by line. */
export interface Story {
  readonly id: string
  readonly entries: readonly Entry[]
  /** From the ledger, when the cost is final. */
  readonly ledger?: { readonly price_usd: string; readonly price_list: string; readonly cost_usd: string }
}

export interface ServerAccess {
  readonly url: string
  readonly key: string
}

export async function fetchStory(access: ServerAccess, id: string): Promise<Story> {
  return fetchFrom(access, `/spillway/requests/${encodeURIComponent(id)}`)
}

export async function fetchFrom<T>({ url, key }: ServerAccess, path: string): Promise<T> {
  const answer = await askServer<T>({ url, key, method: 'GET', path })
  if (answer.isOk) return answer.body
  throw new AdminRefused(`the server answered ${answer.status}: ${answer.body.error?.message ?? 'no reason'}`)
}

export function tellStory(story: Story): string {
  const startAt = story.entries[0]?.at ?? 0
  const told = story.entries.map((entry) => `${since(entry.at, startAt).padStart(9)}  ${tell(entry)}`)
  return [story.id, ...told, ...tellPrice(story)].join('\n')
}

function tellPrice({ ledger }: Story): string[] {
  if (ledger === undefined) return []
  const list = ledger.price_list === '' ? 'the model is in no price list' : `price list ${ledger.price_list}`
  return [`${' '.repeat(11)}list price: $${ledger.price_usd} (${list})`]
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
    case 'screened':
      return tellScreened(entry)
    case 'answer-screened':
      return tellAnswer(entry)
    case 'passages-judged':
      return `passages judged: ${entry.findings.length} findings, ${entry.leftOut} passages left out`
    case 'guard-answered':
      return `guard model ${entry.model}: ${entry.answer} after ${ms(entry.tookUs)}: ${entry.because}`
    case 'granted':
      return tellGrant(entry)
    case 'attempt-ended':
      return `attempt ${entry.attempt} at ${entry.replicaId} (${entry.releaseId}) ${entry.ending}: ${entry.because}`
    case 'settled':
      return tellEnd(entry)
    case 'cost-closed':
      return tellCost(entry)
    case 'shadow-ended':
      return `shadow at ${entry.releaseId}: ${entry.outcome}${tellDifference(entry)}`
    case 'fault-seen':
      return `fault in ${entry.where}: ${entry.because}`
    default:
      return entry.kind
  }
}

/** Screens, categories and what followed; the text is nowhere. */
const tellFindings = (findings: Screened['findings']): string[] =>
  findings.map(
    ({ screen, category, action, count, score }) =>
      `${screen} ${category} ×${count}${score === undefined ? '' : ` (${score.toFixed(2)})`}: ${action}`,
  )

function tellAnswer({ verdict, findings, skipped, dropped }: AnswerScreened): string {
  const unsaid = skipped.length === 0 ? [] : [`not read by ${skipped.join(', ')}`]
  const left = dropped.length === 0 ? [] : [`left out ${dropped.join(', ')}`]
  return `answer screened, ${verdict}: ${[...tellFindings(findings), ...unsaid, ...left].join('; ')}`
}

function tellScreened({ verdict, findings, skipped, tookUs, because }: Screened): string {
  const found = tellFindings(findings)
  const unsaid = skipped.length === 0 ? [] : [`not judged by ${skipped.join(', ')}`]
  return `screened, ${verdict} after ${ms(tookUs)}: ${[because, ...found, ...unsaid].join('; ')}`
}

/** Where and why, then what was left out of the request on the way there. */
function tellGrant(entry: Granted): string {
  const { attempt, replicaId, region, waitedUs, because, placement, rung, trim, again } = entry
  const where = region === undefined ? replicaId : `${replicaId} in region ${region}`
  const whyAgain = again === undefined ? '' : ` (${again})`
  const terms = rung === undefined ? '' : `, on rung ${rung}: ${tellTrim(trim)}`
  return `turn ${attempt}${whyAgain} at ${where} after ${ms(waitedUs)}: ${because}${tellPlacement(placement)}${terms}`
}

function tellTrim(trim: Trim | undefined): string {
  if (trim === undefined) return 'nothing left out'
  const { messages, promptTokens, passages, outputTokens } = trim
  return [
    messages && `${messages.kept} of ${messages.asked} messages`,
    promptTokens && `about ${promptTokens.kept} of ${promptTokens.asked} prompt tokens`,
    passages && `at most ${passages.kept} of ${passages.asked} passages`,
    outputTokens && `at most ${outputTokens.kept} of ${outputTokens.asked ?? 'any number of'} output tokens`,
  ]
    .filter(Boolean)
    .join(', ')
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

/** What the ticket cost in the end, whose money that is, and what sharing the engine saved. */
function tellCost({
  costNano,
  wasteNano,
  batchSavedNano,
  prefixSavedNano,
  time,
  isMeasured,
  isPriced,
}: CostClosed): string {
  const engineMs = ms(time.prefillUs + time.decodeUs + time.againUs)
  const how = isMeasured ? 'measured by the engine' : 'estimated'
  const engine = `${engineMs} of engine time, ${how} (${ms(time.prefillUs)} reading, ${ms(time.decodeUs)} writing)`
  if (!isPriced) return `final cost: ${engine}; no price is known (set usdPerHour of the pool)`
  const wasted = wasteNano === 0 ? '' : `, ${usd(wasteNano)} more borne by the platform`
  const cached = prefixSavedNano === 0 ? '' : `, its cached prompt ${usd(prefixSavedNano)}`
  return `final cost: ${usd(costNano)}${wasted}: ${engine}; batching saved ${usd(batchSavedNano)}${cached}`
}

const usd = (nano: number): string => `$${(nano / 1e9).toFixed(9).replace(/0{1,3}$/, '')}`

const mebibytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`

function tellEnd(entry: Settled): string {
  const { usage, arrivedAt, firstTokenAt, outcome, because, refusal } = entry
  const first = firstTokenAt === undefined ? '' : `, first token after ${ms(firstTokenAt - arrivedAt)}`
  const tokens = `${usage.promptTokens} prompt (${usage.cachedTokens} cached) and ${usage.outputTokens} output tokens`
  const back = refusal?.retryAfterUs === undefined ? '' : `; come back after ${ms(refusal.retryAfterUs)}`
  const memory = entry.kvBytes === undefined ? '' : `, ${mebibytes(entry.kvBytes)} of GPU memory at its end`
  return `${outcome}: ${because}${back}; ${tokens}${memory}${first}`
}
