/**
 * The part of the description that is the same for operators and for orgs: the paths of `/admin/v1` again under
 * `/v1/spillway`, for keys that manage, and what every key may ask about itself.
 */
export function ownPaths(adminPaths: Readonly<Record<string, object>>, plainMe: object): Record<string, object> {
  const own = Object.entries(adminPaths).map(([path, methods]) => {
    const operations = Object.entries(methods as Record<string, Operation>).map(([method, operation]) => [
      method,
      {
        ...operation,
        operationId: operation.operationId.replace(/^admin/, 'own'),
        summary: `${operation.summary} In the org of the key or token, as far as its role goes.`,
        security: [{ key: [] }],
        responses: {
          ...operation.responses,
          403: {
            ...operation.responses[403],
            description: 'The key does not manage, or its authority ends before this.',
          },
          404: { ...operation.responses[404], description: 'No such record in the org.' },
        },
      },
    ])
    return [path.replace(/^\/admin\/v1/, '/v1/spillway'), Object.fromEntries(operations)]
  })
  return { ...Object.fromEntries(own), '/v1/spillway/me': { get: plainMe } }
}

interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly responses: Readonly<Record<number, object>>
}
