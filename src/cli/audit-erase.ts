import { type Command, textFlag, UsageError } from './command.ts'
import { ADMIN_FLAGS, AdminClient, argumentOf, BECAUSE_FLAG, becauseOf } from './http-admin-client.ts'

/** `spillway audit erase`: the one command of the audit that needs a server, because a server may be using the key. */
export const auditEraseCommand: Command = {
  name: 'audit erase',
  summary: 'destroy the key of an end user or key, whose name no event tells any more',
  about:
    'Every name in the audit is sealed with a key of its own. Without that key the events stay as they are, and nobody can\n' +
    'read whom they are about. It cannot be undone. The erasure is an event of its own, with its reason.',
  argument: 'NAME',
  flags: {
    tenant: { type: 'string', value: 'ID', meaning: 'the tenant of the end user or key (required)' },
    what: { type: 'string', value: 'WORD', meaning: 'user or key (default user)' },
    ...BECAUSE_FLAG,
    ...ADMIN_FLAGS,
  },
  examples: ['spillway audit erase customer-4711 --tenant shop --because "request of 2 November"'],
  async run(flags, io) {
    const name = argumentOf(
      flags,
      'end user or key',
      'audit erase customer-4711 --tenant shop --because "asked for it"',
    )
    const tenant = textFlag(flags, 'tenant')
    if (tenant === undefined) throw new UsageError('--tenant is missing: of which tenant?')
    const body = { tenant, what: textFlag(flags, 'what') ?? 'user', name, because: becauseOf(flags) }
    const answer = await new AdminClient(flags).call<{ keys: number }>('POST', '/audit/erase', body)
    if (flags['json'] === true) io.out(JSON.stringify(answer))
    else if (answer.keys > 0) io.out(`Done: ${answer.keys} keys destroyed.`)
    else io.out('Nothing to erase: the audit has no key of this name.')
    return 0
  },
}
