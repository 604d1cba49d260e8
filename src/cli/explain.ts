import { type Command, JSON_FLAG, textFlag, UsageError } from './command.ts'
import { SERVER_FLAGS, serverUrlOf } from './http-server-client.ts'

export const explain: Command = {
  name: 'explain',
  summary: 'print what happened to one request, with the reason for every decision',
  about:
    'REQUEST_ID is the x-request-id of an answer or a refusal. The running server remembers the last thousand requests:\n' +
    'all up to 50 a second; above that, 50 completed and 50 other requests a second. A tenant sees its own requests only.',
  argument: 'REQUEST_ID',
  flags: {
    ...SERVER_FLAGS,
    key: { type: 'string', value: 'KEY', meaning: "a key of the request's tenant (default: the demo key of acme)" },
    json: JSON_FLAG,
  },
  examples: ['spillway explain req_8f0c1d2e3a4b5c6d7e8f9a0b', 'spillway explain req_… --key sk-demo-globex --json'],
  async run(flags, io) {
    const id = textFlag(flags, 'argument')
    if (id === undefined) throw new UsageError('REQUEST_ID is missing. Give the x-request-id of the answer.')
    const { ExplainError, fetchStory, tellStory } = await import('./http-explain.ts')
    const url = serverUrlOf(flags)
    try {
      const story = await fetchStory(url, textFlag(flags, 'key') ?? 'sk-demo-acme', id)
      io.out(flags['json'] === true ? JSON.stringify(story) : tellStory(story))
      return 0
    } catch (error) {
      if (!(error instanceof ExplainError)) throw error
      io.err(`spillway: ${error.message}`)
      return 1
    }
  },
}
