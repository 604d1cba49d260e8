/** A question and a few passages at a time; more connections would only queue at the server. */
export const EMBEDDER_CONNECTIONS_MAX = 16
