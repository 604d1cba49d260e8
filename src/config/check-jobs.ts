import type { Problem } from './explain.ts'
import type { Settings } from './schema.ts'

/** Queues that would be mixed up, and half a credential. */
export function checkJobs({ jobs: { queues, bucket } }: Settings): Problem[] {
  return [...checkQueues(queues), ...(bucket === undefined ? [] : checkBucket(bucket))]
}

function checkBucket({ accessKeyId, apiKey, apiKeyEnv }: NonNullable<Settings['jobs']['bucket']>): Problem[] {
  const path = ['jobs', 'bucket']
  if (apiKey !== undefined && apiKeyEnv !== undefined)
    return [{ path, text: 'has apiKey and apiKeyEnv. Keep one of them' }]
  if ((accessKeyId === undefined) === ((apiKey ?? apiKeyEnv) === undefined)) return []
  return [{ path, text: 'has half a credential. Set both accessKeyId and apiKeyEnv, or neither' }]
}

function checkQueues(queues: Settings['jobs']['queues']): Problem[] {
  return queues.flatMap((queue, i): Problem[] => {
    const path = ['jobs', 'queues', i]
    const earlier = queues.slice(0, i)
    if (earlier.some(({ id }) => id === queue.id))
      return [{ path, text: `has the name of another queue (${queue.id})` }]
    if (earlier.some(({ url }) => url === queue.url))
      return [{ path, text: 'reads what another queue reads. A queue has one key: name each address once' }]
    if (queues.some(({ url }) => url === queue.answersUrl))
      return [
        { path, text: 'sends its answers where messages are read, so that answers would be run. Use another queue' },
      ]
    return []
  })
}
