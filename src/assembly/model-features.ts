import type { PoolSetup } from '../config/to-domain.ts'
import type { ModelFeatures } from '../domain/model-features.ts'

/** The features of a model, from the pools that serve it: a request for a missing feature is refused early. */
export function modelFeatures(model: string, pools: Iterable<PoolSetup>): ModelFeatures {
  const kinds = Array.from(pools)
    .filter(({ pool }) => pool.model === model)
    .map(({ backend }) =>
      backend.kind === 'http-openai' && backend.engine === 'sagemaker' ? 'sagemaker' : backend.kind,
    )
  // The pools of this region decide; another region decides only for models without a pool here.
  return FEATURES[kinds.findLast((kind) => kind !== 'peer') ?? kinds[0] ?? 'simulated']
}

const SIMULATED_FEATURES: ModelFeatures = {
  logprobs: true,
  bestOf: true,
  tools: false,
  jsonSchema: false,
  vectors: true,
  tensors: true,
}
/** Triton's `generate` takes a text and returns a text. */
const OIP_FEATURES: ModelFeatures = { logprobs: false, tools: false, jsonSchema: false, tensors: true }
const UPSTREAM_FEATURES: ModelFeatures = { logprobs: true, tools: true, jsonSchema: true, vectors: true, transit: true }

const FEATURES: Readonly<Record<PoolSetup['backend']['kind'] | 'sagemaker', ModelFeatures>> = {
  peer: { ...UPSTREAM_FEATURES, tensors: true },
  simulated: SIMULATED_FEATURES,
  'http-openai': UPSTREAM_FEATURES,
  // It has one path.
  sagemaker: { ...UPSTREAM_FEATURES, transit: false },
  'http-oip': OIP_FEATURES,
}
