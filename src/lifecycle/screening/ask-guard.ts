import type { Delta } from '../../domain/delta.ts'
import type { Settled } from '../../domain/entry.ts'
import { cacheScopeOf, type Errand, type Request } from '../../domain/request.ts'
import type { Tenant } from '../../domain/tenant.ts'
import type { Transit } from '../../domain/transit.ts'
import type { Platform } from '../platform.ts'
import type { Sink } from '../ports.ts'
import { type ErrandRequest, errandTerms, PLATFORM_TENANT } from '../rollout/errands.ts'
import type { ServeRequest } from '../rollout/run-errand.ts'
import type { GuardQuestion, GuardReply } from '../screening-ports.ts'
import type { Ticket } from '../ticket.ts'

/**
 * A question to the guard model is a ticket like any other, through the same `serveRequest` and the platform's own
 * pools: an errand of the platform's tenant in band `interactive`. It has a weight that gives it nearly every turn it
 * wants, because tickets of all tenants wait for its answers; a pool of its own is better still, because then it waits
 * for nobody. It is never screened, mirrored, cached or called off for somebody else's room, so one ask cannot lead to
 * another. When the question's time is over it is called off, in its lane or at its engine. A ticket that ended while
 * the other judges read it asks nothing: under overload most tickets do, and the guard's time belongs to those who wait.
 *
 * Admission is asked whether the first token can come in that time, and not whether the last one can: an answer of one
 * word is planned at its longest until its usual length is known, and a guard that is refused for that would never learn.
 *
 * Bounds: `ASKS_MAX` asks of one release at a time; the answer's text up to `CHARACTERS_MAX`.
 */
const GUARD_WEIGHT = 100
/** The deadline that admission predicts against, in times of the question's own. */
const DEADLINE_TIMES = 10
/** Asks of one release that run or wait at once. Beyond it the guard is far too slow to be waited for. */
const ASKS_MAX = 512
/** Characters of an answer that are read. A verdict is a word and a list of categories; moderations are about 2,000. */
const CHARACTERS_MAX = 16_384

export async function askGuard(
  platform: Platform,
  serve: ServeRequest,
  { id, phase, request: judged }: Ticket,
  question: GuardQuestion,
): Promise<GuardReply> {
  const { errands, policies, world } = platform
  if (phase === 'settled') return { kind: 'moot' }
  const releaseId = policies.rollouts.get(question.model)?.serving ?? policies.models.get(question.model)?.releases[0]
  if (releaseId === undefined) return { kind: 'refused', because: `there is no model ${question.model}` }
  if (errands.countOf('guard', releaseId) >= ASKS_MAX)
    return { kind: 'unasked', because: `${ASKS_MAX} asks of ${question.model} are running` }
  const errand = { kind: 'guard', releaseId, of: id } as const
  const answer = new GuardText()
  const now = world.clock.now()
  // A verdict that comes sooner would tell that another tenant has sent the same.
  const request = { ...requestOf(question, errand, now), cacheSalt: cacheScopeOf(judged) }
  const settled = await errands.run(request, (cancellation) => {
    const forget = world.clock.at(now + question.timeoutUs, () => cancellation.cancel('deadline-passed'))
    return serve(platform, request, cancellation, answer).finally(forget)
  })
  return replyOf(settled, answer)
}

function replyOf({ outcome, because }: Settled, { text, isWhole }: GuardText): GuardReply {
  switch (outcome) {
    case 'completed':
      return isWhole ? { kind: 'answered', text } : { kind: 'lost', because: 'the answer is too long to be a verdict' }
    case 'expired':
      return { kind: 'late', because }
    case 'rejected':
    case 'evicted':
      return { kind: 'refused', because }
    default:
      return { kind: 'lost', because }
  }
}

function requestOf(question: GuardQuestion, errand: Errand & { kind: 'guard' }, now: number): ErrandRequest {
  const { model, timeoutUs, segments, outputTokensMax, body } = question
  const isChat = question.route === 'chat'
  const tenant: Tenant = {
    ...PLATFORM_TENANT,
    weight: GUARD_WEIGHT,
    bands: ['interactive'],
    slo: { name: 'guard', ttftUs: timeoutUs, interTokenUs: timeoutUs, totalUs: timeoutUs },
    queueUsMax: timeoutUs,
  }
  const asked: Pick<Request, 'kind' | 'outputTokensMax' | 'text' | 'transit'> = isChat
    ? { kind: 'chat', outputTokensMax, text: { body: { model, ...body, max_tokens: outputTokensMax, stream: false } } }
    : { kind: 'transit', outputTokensMax: undefined, text: undefined, transit: moderationsOf(body) }
  return {
    ...errandTerms(errand, now),
    tenant,
    slo: tenant.slo,
    band: 'interactive',
    deadlineAt: now + DEADLINE_TIMES * timeoutUs,
    id: `${errand.of}~guard`,
    model,
    segments,
    isEstimated: true,
    prefixHashes: [],
    choiceCount: 1,
    isStreamed: false,
    ...asked,
  }
}

function moderationsOf(body: Readonly<Record<string, unknown>>): Transit {
  const bytesFor = (model: string): Uint8Array => new TextEncoder().encode(JSON.stringify({ ...body, model }))
  return {
    route: 'moderations',
    path: '/moderations',
    contentType: 'application/json',
    accept: 'application/json',
    body: {
      isUpload: false,
      canOpen: true,
      open: (model) => {
        const bytes = bytesFor(model)
        return { length: bytes.length, pieces: once(bytes), close: () => {} }
      },
    },
  }
}

async function* once(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  yield await Promise.resolve(bytes)
}

/** The guard's answer as text, from the choices of a chat or from bytes that passed through. */
class GuardText implements Sink {
  readonly #decoder = new TextDecoder()
  #text = ''
  isWhole = true

  get text(): string {
    return this.#text
  }

  start(): void {}

  write({ choices, bytes }: Delta): undefined {
    for (const { index, content } of choices ?? []) if (index === 0 && content !== null) this.#add(content)
    if (bytes !== undefined) this.#add(this.#decoder.decode(bytes, { stream: true }))
    return undefined
  }

  finish(): void {}
  fail(): void {}

  #add(piece: string): void {
    if (this.#text.length + piece.length > CHARACTERS_MAX) this.isWhole = false
    else this.#text += piece
  }
}
