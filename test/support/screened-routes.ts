/**
 * Every route of the gateway that takes a body, and what becomes of the text in it: screened, or on the closed list of
 * routes whose text no screen has to see. A route that is in neither fails the test of law L14.
 *
 * Routes with GET and DELETE take no body.
 */
export const SCREENED_ROUTES: ReadonlySet<string> = new Set([
  'POST /v1/chat/completions',
  'POST /v1/chat/completions/*',
  'POST /v1/completions',
  'POST /v1/responses',
  'POST /v1/embeddings',
  'POST /v1/messages',
  'POST /v1/messages/count_tokens',
  'POST /openai/deployments/*',
  'POST /openai/v1/chat/completions',
  'POST /openai/v1/completions',
  'POST /openai/v1/responses',
  'POST /openai/v1/embeddings',
  'POST /openai/responses',
  'POST /infer',
  'POST /v1/audio/speech',
  'POST /v1/audio/transcriptions',
  'POST /v1/audio/translations',
  'POST /v1/images/generations',
  'POST /v1/images/edits',
  'POST /v1/images/variations',
  'POST /v1/rerank',
  'POST /rerank',
  'POST /v1/score',
  'POST /tokenize',
  'POST /detokenize',
  'POST /v2/models/*',
  // Of these, the search: what is stored rests as it was uploaded.
  'POST /v1/vector_stores/*',
])

export const UNSCREENED_ROUTES: ReadonlyMap<RegExp, string> = new Map([
  [/^POST \/v1\/files$/, 'rests as it was uploaded, and is screened when a prompt reads it'],
  [/^POST \/v1\/moderations$/, 'is scored here by our own models, and goes nowhere else'],
  [/^POST \/v1\/batches(\/\*)?$/, 'names a file, whose lines are screened when they run'],
  [/^POST \/v1\/vector_stores$/, 'a name and metadata, which rest as they were uploaded'],
  [/^POST \/v1\/responses\/\*$/, 'cancels, and reads no body'],
  [/^(POST|PATCH) \/admin\/v1\//, 'administration: operators only, and no text of a prompt'],
  [/^POST \/spillway\/witness$/, 'checkpoints of another gateway’s audit: hashes, and no text'],
  [/^(POST|PATCH) \/v1\/spillway\/(orgs|tenants|keys)/, 'administration of an org: no text of a prompt'],
])

/** Files of routes that collect a body as it came, with what it is. */
export const PLAIN_BODIES: Readonly<Record<string, string>> = {
  'admin.ts': 'administration',
  'batches.ts': 'the name of a file; lines are screened when they run',
  'console.ts': 'a key, which begins a session',
  'corpora.ts': 'documents, names and attributes, which rest as they were uploaded; searches are screened',
  'moderations.ts': 'texts that are scored here and go nowhere else',
  'retrieval.ts': 'calls of our own gateways, which have screened them',
  'what-if.ts': 'an operator’s numbers for a scenario',
}
