import type { EngineView } from '../engine/engine-view.ts'
import type { Registry } from '../telemetry/registry.ts'
import type { Identity } from './engine-metric-families.ts'

/**
 * vLLM's `spec_decode` counters, present only while an engine speculates. An engine that does shows these sums in its
 * view as `speculation`.
 */
interface SpeculationView {
  readonly drafts: number
  readonly draftTokens: number
  readonly acceptedTokens: number
  /** How often a draft was right at each position. */
  readonly acceptedByPosition: readonly number[]
}

const speculationOf = (view: EngineView): SpeculationView | undefined =>
  (view as { readonly speculation?: SpeculationView }).speculation

/** Returns what brings the counters up to date; undefined when there is nothing to count. */
export function declareSpeculation(
  registry: Registry,
  identity: Identity,
  first: EngineView,
): ((view: EngineView) => void) | undefined {
  if (speculationOf(first) === undefined) return undefined
  const labels = ['model_name', 'engine'] as const
  const counter = (name: string, help: string) =>
    registry.counter({ name: `vllm:spec_decode_${name}_total`, help, labels }).with(...identity)
  const drafts = counter('num_drafts', 'Number of spec decoding drafts.')
  const draftTokens = counter('num_draft_tokens', 'Number of draft tokens.')
  const acceptedTokens = counter('num_accepted_tokens', 'Number of accepted tokens.')
  const byPosition = registry.counter({
    name: 'vllm:spec_decode_num_accepted_tokens_per_pos_total',
    help: 'Accepted tokens per draft position.',
    labels: [...labels, 'position'] as const,
  })
  return (view) => {
    const now = speculationOf(view)
    if (now === undefined) return
    drafts.raiseTo(now.drafts)
    draftTokens.raiseTo(now.draftTokens)
    acceptedTokens.raiseTo(now.acceptedTokens)
    for (const [position, accepted] of now.acceptedByPosition.entries()) {
      byPosition.with(...identity, String(position)).raiseTo(accepted)
    }
  }
}
