/** What the document says of one method at one path; its id is unique in the document. */
export interface Operation {
  readonly operationId: string
  readonly summary: string
  readonly [more: string]: unknown
}

type Paths = Readonly<Record<string, Readonly<Record<string, Operation>>>>

/** Azure's addresses without a deployment, as `azureRoutes` makes them: each is one of OpenAI's under another name. */
export function azurePaths(openAi: Paths): Paths {
  const renamed: [string, Paths[string]][] = []
  for (const [path, item] of Object.entries(openAi)) {
    renamed.push([`/openai${path}`, named(item, 'Azure')])
    const isUnversioned = path.startsWith('/v1/responses') || path.startsWith('/v1/models')
    if (isUnversioned) renamed.push([path.replace('/v1/', '/openai/'), named(item, 'AzureUnversioned')])
  }
  return Object.fromEntries(renamed)
}

function named(item: Paths[string], suffix: string): Paths[string] {
  const operations = Object.entries(item).map(([method, operation]) => [
    method,
    {
      ...operation,
      operationId: operation.operationId + suffix,
      summary: operation.summary.replace(/\.$/, ', at Azure’s address.'),
    },
  ])
  return Object.fromEntries(operations)
}
