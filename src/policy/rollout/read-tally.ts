import { METRICS } from './judge.ts'
import type { TrialTally } from './model-rollout.ts'

/**
 * Is this what another gateway's judge would say?
 *
 * Totals come from other processes, perhaps of another version. What is not understood is not heard: a judge without it
 * knows less, and decides later. Numbers are finite and not negative, or the capital of all would be none.
 */
export function readTally(body: unknown): TrialTally | undefined {
  if (!isRecord(body) || typeof body['stable'] !== 'string' || typeof body['canary'] !== 'string') return undefined
  const { epoch, tally } = body
  if (!isRecord(epoch) || !['began', 'trial', 'step'].every((key) => isCount(epoch[key]))) return undefined
  if (!isRecord(tally) || !isCount(tally['stepPairs']) || !isRecord(tally['accounts'])) return undefined
  const { accounts } = tally
  return METRICS.every((name) => isAccount(accounts[name])) ? (body as unknown as TrialTally) : undefined
}

function isAccount(account: unknown): boolean {
  if (!isRecord(account)) return false
  const { whole, step, proof } = account
  return isCapital(whole) && isCapital(step) && (proof === undefined || isCapital(proof))
}

function isCapital(capital: unknown): boolean {
  if (!isRecord(capital)) return false
  const { count, parts } = capital
  return isCount(count) && Array.isArray(parts) && parts.length > 0 && parts.every(isCount)
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isCount = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value) && value >= 0
