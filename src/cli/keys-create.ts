import { randomBytes } from 'node:crypto'
import { hashKey } from '../config/key-hash.ts'
import { NAME_PATTERN } from '../config/schema-fields.ts'
import { type Command, JSON_FLAG, textFlag, UsageError } from './command.ts'

/** As long as a SHA-256 hash: a secret of this length cannot be guessed, so its hash needs no salt. */
const SECRET_BYTES = 32

export const keysCreateCommand: Command = {
  name: 'keys create',
  summary: 'make a key for a tenant; the secret is shown once and stored nowhere',
  about: 'Prints the secret for the client, and its hash for the configuration file, which contains only hashes.',
  flags: {
    tenant: { type: 'string', short: 't', value: 'ID', meaning: 'the tenant that the key names (required)' },
    id: { type: 'string', value: 'NAME', meaning: 'the key\u2019s name in metrics and logs' },
    json: JSON_FLAG,
  },
  examples: ['spillway keys create --tenant acme', 'spillway keys create --tenant acme --id acme-web --json'],
  run(flags, io) {
    const tenant = nameFlag('tenant', textFlag(flags, 'tenant'))
    const secret = `sk-sw-${randomBytes(SECRET_BYTES).toString('base64url')}`
    const hash = hashKey(secret)
    const id = nameFlag('id', textFlag(flags, 'id') ?? `${tenant}-${hash.slice('sha256:'.length).slice(0, 8)}`)
    io.out(flags['json'] === true ? JSON.stringify({ tenant, id, secret, hash }) : describe(tenant, id, secret, hash))
    return 0
  },
}

function nameFlag(flag: string, value: string | undefined): string {
  if (value === undefined) throw new UsageError(`--${flag} is missing. Try: spillway keys create --tenant acme`)
  if (new RegExp(NAME_PATTERN).test(value)) return value
  throw new UsageError(`--${flag} is "${value}". Use letters, digits and . _ : / - only.`)
}

function describe(tenant: string, id: string, secret: string, hash: string): string {
  return `Secret for the client. It is shown once and stored nowhere:

  ${secret}

For the configuration file:

  tenants:
    - id: ${tenant}
      keys:
        - id: ${id}
          hash: ${hash}`
}
