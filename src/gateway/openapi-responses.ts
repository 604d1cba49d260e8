const AT_RESPONSE = { parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }] }

/** Paths of stored responses; `plain` describes a call without a body. */
export function storedResponsePaths(plain: (operationId: string, summary: string) => object): object {
  const call = (operationId: string, summary: string): object => ({ ...plain(operationId, summary), ...AT_RESPONSE })
  return {
    '/v1/responses/{id}': {
      get: call('retrieveResponse', 'A stored response; of one in the background, its `status` now.'),
      delete: call('deleteResponse', 'Erases a stored response.'),
    },
    '/v1/responses/{id}/input_items': { get: call('listInputItems', 'The items that a stored response answers.') },
    '/v1/responses/{id}/cancel': {
      post: call('cancelResponse', 'Cancels a response that runs in the background; any other is refused.'),
    },
  }
}
