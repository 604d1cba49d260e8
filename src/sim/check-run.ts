import type { VirtualClock } from '../base/virtual-clock.ts'
import type { Key, Tenant } from '../domain/tenant.ts'
import type { ClientScripts } from './clients/scripts.ts'
import type { SimulatedGateway } from './gateway.ts'
import type { LawChecker } from './laws.ts'
import type { SimulatedFleet } from './world.ts'

/**
 * The laws that a journal cannot show (docs/architecture/laws.md), checked at the end of every window and of the run:
 *
 *   L2, L3, L6  the dispatcher's own books: leases, bounds of queues, no idle room while a ticket waits
 *   L4          budgets, against the account that the journal gives
 *   L8          blocks of every engine: free + held = total
 *   L13         no engine finds more of a prompt in its cache than the prompt's own tenant has sent before
 *
 * A broken invariant of the dispatcher or of an engine throws: the run would go on with wrong books.
 */
export interface CheckedRun {
  readonly clock: VirtualClock
  readonly gateways: readonly SimulatedGateway[]
  readonly fleet: SimulatedFleet
  readonly scripts: ClientScripts
  readonly callers: ReadonlyArray<{ readonly tenant: Tenant; readonly key: Key }>
  readonly laws: LawChecker
}

export function checkWindow({ clock, gateways, fleet, callers, laws }: CheckedRun): void {
  for (const { platform } of gateways) platform.policies.dispatcher.assertInvariants()
  for (const replica of fleet.all()) replica.assertInvariants()
  const [gateway] = gateways
  if (gateway === undefined || gateways.length > 1) return
  const { budgets, standings } = gateway.platform.policies
  const now = clock.now()
  const callerOf = new Map<string, (typeof callers)[number]>()
  for (const caller of callers) if (!callerOf.has(caller.tenant.id)) callerOf.set(caller.tenant.id, caller)
  laws.checkBudgets(now, (tenantId) => {
    const caller = callerOf.get(tenantId)
    const scopes = caller === undefined ? [] : standings.of(caller).scopes
    return budgets.view(
      now,
      scopes.filter(({ noun }) => noun === 'tenant'),
    )
  })
}

export function checkEnd(run: CheckedRun): void {
  checkWindow(run)
  for (const what of leftBehind(run)) run.laws.broken('L2', what)
  const { hits, preemptions } = prefixHits(run.fleet)
  const best = run.fleet.bestHits.count?.hits
  // A preempted sequence finds its own blocks again, which counts as a hit once more.
  if (best !== undefined && preemptions === 0 && hits > best)
    run.laws.broken('L13', `engines found ${hits} tokens of prompts, and their own tenants had sent ${best}`)
}

function prefixHits(fleet: SimulatedFleet): { readonly hits: number; readonly preemptions: number } {
  let hits = 0
  let preemptions = 0
  for (const replica of fleet.engines())
    for (const view of replica.views()) {
      hits += view.prefixHits
      preemptions += view.preemptions
    }
  return { hits, preemptions }
}

/** After the last request nothing may be held: no place in the queue, no lease, no sequence or block at an engine. */
function leftBehind(run: CheckedRun): string[] {
  const { gateways, scripts, fleet } = run
  const left: string[] = []
  for (const { platform } of gateways) {
    const { waiting, inFlight } = platform.turnstile.view()
    if (platform.liveCount > 0) left.push(`${platform.liveCount} tickets are still alive`)
    if (waiting > 0 || inFlight > 0) left.push(`${waiting} still wait, ${inFlight} leases are still held`)
  }
  if (scripts.size > 0) left.push(`${scripts.size} clients' scripts are left`)
  for (const { replica, engine } of fleet.all()) {
    const { running, waiting: queued, kvUsageRatio } = engine
    if (running + queued > 0 || kvUsageRatio > 0)
      left.push(`${replica.id} still runs ${running} and holds ${kvUsageRatio}`)
  }
  return left
}
