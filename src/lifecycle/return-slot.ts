import type { Instant } from '../base/clock.ts'
import type { Refusal } from '../domain/outcome.ts'
import type { Request } from '../domain/request.ts'
import type { RejectedVerdict, Verdict } from '../policy/admission/admission.ts'
import { latenessOf, predict } from '../policy/admission/feasibility.ts'
import type { ReturnSlot, ReturnSlots } from '../policy/admission/return-slots.ts'
import { returnLaneOf } from './admission-meters.ts'
import type { Platform } from './platform.ts'
import type { Policies } from './policies.ts'

/**
 * A refusal that says when to come back gives a slot for that time (`return-slots.ts`), and who comes back is known by his
 * key and the body that he sends again. While nobody has a slot, nobody's body is looked at.
 */

/** The slot of a request that comes on time; undefined for all others. */
export function slotOf({ returnSlots }: Policies, now: Instant, request: Request): ReturnSlot | undefined {
  const name = nameAmong(returnSlots, request)
  return name === undefined ? undefined : returnSlots.dueFor(now, name)
}

/**
 * A slot ends with the verdict on who came for it, and when he was admitted before its time. A budget that is empty says
 * nothing about room: he may come again while it is his time.
 */
export function endSlot(policies: Policies, request: Request, verdict: Verdict, slot: ReturnSlot | undefined): void {
  const isAdmitted = verdict.kind === 'admitted'
  if (!isAdmitted && (slot === undefined || verdict.refusal.code !== 'predicted-late')) return
  const name = nameAmong(policies.returnSlots, request)
  if (name !== undefined) policies.returnSlots.takeUp(name, slot !== undefined, isAdmitted)
}

/** The refusal with the time of a slot; or, where none can be given, with the word that nothing is kept. */
export function withSlot(platform: Platform, now: Instant, request: Request, verdict: RejectedVerdict): Refusal {
  const { policies, admission } = platform
  const { refusal, nearest } = verdict
  const isWanted = refusal.code === 'predicted-late' && request.band !== 'offline' && !policies.returnSlots.isOff
  if (!isWanted || nearest === undefined || refusal.retryAfterUs === undefined) return refusal
  const { plan, pool, patience, terms } = nearest
  if (pool.wakingUs !== undefined) return refusal
  const name = slotNameOf(request)
  const wanted = admission.slotQuestion(request, pool.poolId, plan)
  const waitUs = admission.waitBehindSlotsUs(now, request, pool.poolId, plan)
  const { lateUs } = latenessOf(predict(plan, request.choiceCount, pool.speed, waitUs), patience, terms)
  const afterUs = Math.max(refusal.retryAfterUs, lateUs)
  const slot = name === undefined ? undefined : policies.returnSlots.give(now, { ...wanted, name, afterUs })
  const told = slot === undefined ? 'none' : 'given'
  const comeBackUs = slot === undefined ? afterUs : slot.dueAt - now
  return { ...refusal, retryAfterUs: comeBackUs, slot: told, detail: { ...refusal.detail, return_slot: told } }
}

/** Undefined where nobody of the lane has a slot, too: then no body is looked at. */
function nameAmong(returnSlots: ReturnSlots, request: Request): string | undefined {
  return returnSlots.count > 0 && returnSlots.hasClaims(returnLaneOf(request)) ? slotNameOf(request) : undefined
}

/** Lane, key and body: band and model need not be in the body. Undefined for a request that has no body of its own. */
function slotNameOf(request: Request): string | undefined {
  const { key, askName } = request
  return askName === undefined ? undefined : `${returnLaneOf(request)}\n${key.id}\n${askName()}`
}
