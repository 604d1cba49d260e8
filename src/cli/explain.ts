import { type Command, textFlag, UsageError } from './command.ts'
import { ADMIN_FLAGS, serverAccessOf } from './http-admin-client.ts'

export const explainCommand: Command = {
  name: 'explain',
  summary: 'print what happened to one request, with the reason for every decision',
  about:
    'REQUEST_ID is the x-request-id of an answer or a refusal; "spillway refusals" lists the last refusals. The running\n' +
    'server remembers the last thousand requests: all up to 50 a second; above that, 50 completed and 50 other requests\n' +
    'a second. An admin key sees every request, the key of a tenant its own.',
  argument: 'REQUEST_ID',
  flags: {
    ...ADMIN_FLAGS,
    key: {
      type: 'string',
      short: 'k',
      value: 'KEY',
      meaning: "an admin key (or set SPILLWAY_ADMIN_KEY), or a tenant's",
    },
  },
  examples: ['spillway explain req_8f0c1d2e3a4b5c6d7e8f9a0b', 'spillway explain req_… --key sk-demo-globex --json'],
  async run(flags, io) {
    const id = textFlag(flags, 'argument')
    if (id === undefined) throw new UsageError('REQUEST_ID is missing. Give the x-request-id of the answer.')
    const { fetchStory, tellStory } = await import('./http-explain.ts')
    const story = await fetchStory(serverAccessOf(flags), id)
    io.out(flags['json'] === true ? JSON.stringify(story) : tellStory(story))
    return 0
  },
}
