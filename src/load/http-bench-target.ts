import { ConfigError } from '../config/config-error.ts'
import { DEMO_KEYS, isLoopback } from '../config/demo.ts'
import { nearest } from '../config/nearest.ts'
import { LoadTarget } from './http-load-target.ts'

/** The server, keys and models of a live run, as given on the command line and checked before the first request. */

export function parseUrl(text: string): string {
  try {
    const url = new URL(text)
    if (url.protocol === 'http:' || url.protocol === 'https:') return text
  } catch {
    // Reported below.
  }
  throw new ConfigError([`--url is "${text}". Give an address such as http://127.0.0.1:8080.`])
}

/**
 * `tenant=secret` is for one tenant (or every tenant of a group), a bare secret for all others. Without any, the demo
 * tenants have their published keys, on loopback only; other tenants send none, as engines without keys expect.
 */
export function keyRing(
  given: readonly string[],
  names: readonly string[],
  url: string,
): (tenantId: string, group: string | undefined) => string | undefined {
  const keys = new Map<string, string>()
  let forAll: string | undefined
  for (const text of given) {
    const [, name, secret] = /^([^=]+)=(.+)$/.exec(text) ?? []
    if (name === undefined || secret === undefined) forAll = text
    else if (names.includes(name)) keys.set(name, secret)
    else {
      const guess = nearest(name, [...names])
      const hint = guess === undefined ? `Known: ${names.slice(0, 10).join(', ')}` : `Did you mean "${guess}"?`
      throw new ConfigError([`--key names "${name}", which the scenario does not have. ${hint}`])
    }
  }
  const hasDemoKeys = given.length === 0 && isLoopback(new URL(url).hostname)
  const demo = new Map(hasDemoKeys ? DEMO_KEYS.map(({ tenantId, secret }) => [tenantId, secret]) : [])
  return (tenantId, group) => keys.get(tenantId) ?? keys.get(group ?? '') ?? forAll ?? demo.get(tenantId)
}

/** What the user and the scenario ask the server for. */
export interface TargetNeeds {
  /** Each key with one of its tenants, for the messages. */
  readonly keys: ReadonlyMap<string | undefined, string>
  /** As the scenario calls them. */
  readonly models: readonly string[]
  /** The model that the user named, for every model of the scenario. */
  readonly model?: string | undefined
}

/**
 * Checks that the server answers, the keys work and the models are known; one clear line for each problem. Returns the
 * server's name of each model of the scenario. A server with one model needs no `--model`: it serves every request.
 */
export async function checkTarget(
  url: string,
  { keys, models, model }: TargetNeeds,
): Promise<(name: string) => string> {
  const target = new LoadTarget({ url, connectionsMax: 4, silenceMsMax: 5_000 })
  const problems: string[] = []
  let only: string | undefined
  try {
    for (const [key, tenantId] of keys) {
      const answer = await target.models(key)
      if (answer.kind === 'unreachable') {
        problems.push(`no server answers at ${url} (${answer.because}). Start the server, or give another --url.`)
        break
      }
      if (answer.kind === 'refused' && (answer.status === 401 || answer.status === 403)) {
        const which = key === undefined ? `no key was given for` : `its key was refused for`
        problems.push(`${url} answers ${answer.status}: ${which} ${tenantId}. Give --key ${tenantId}=SECRET.`)
      }
      // A server without a list of models is assumed to have the model.
      if (answer.kind !== 'listed' || answer.models.length === 0) continue
      if (model === undefined && answer.models.length === 1) only = answer.models[0]
      const asked = new Set(model === undefined ? models.map((name) => only ?? name) : [model])
      for (const name of [...asked].filter((each) => !answer.models.includes(each))) {
        problems.push(`${url} has no model "${name}". It has ${answer.models.join(', ')}: choose one with --model.`)
      }
      break
    }
  } finally {
    await target.close()
  }
  if (problems.length > 0) throw new ConfigError(problems)
  return (name) => model ?? only ?? name
}
