import type { DocCommand } from './doc-commands.ts'

/**
 * How a command of the documentation is run: as it stands, but for what a reader fills in (`REQUEST_ID`), what is written
 * short on purpose (keys of the demo), and the address of the server, which is another one here. Without `--full` what
 * takes long is shortened; the figures of a shortened command are not compared.
 */
export interface Plan {
  readonly shell: string
  /**
   * `ends`: by itself, with exit code 0. `serves`: it is ready, and ends with 0 when it is asked to. `begins`: it works
   * for its first seconds of processor time without an error. `files`: the test suites that it names are there; the suite
   * runs them.
   */
  readonly way: 'ends' | 'serves' | 'begins' | 'files'
  readonly isShort: boolean
  readonly server: 'demo' | 'file' | undefined
}

export interface Served {
  /** Of the demo: where, and a request that it has answered. */
  readonly demo: { readonly port: number; readonly requestId: string }
  /** Of a server whose configuration has what the pages talk of. */
  readonly file: { readonly port: number; readonly config: string; readonly poolId: string }
}

const ADMIN = 'sk-demo-admin'
const TENANT = 'sk-demo-acme'
/** Of the server with the recipes' names. */
export const FILE_TENANT = 'sk-docs-check-acme'

/** Experiments that end within about four seconds of processor time; others only begin. */
const SHORT_EXPERIMENTS =
  /\/(?:autoscale-curve|chunked-prefill|guard-wait|served-fit|shared-prompts|static-batching)\.ts(?!.* --trace)|\/reference-a100/

/** Scenarios that take more than about three seconds of processor time at their own length, and what they take at most here. */
const LONG_SCENARIOS =
  /^npx spillway simulate (?:bad-canary|blackout|cold-start|diurnal|good-canary|gpu-sharing|heterogeneous|large-fleet|mooncake|noisy-neighbour|prefix-heavy|reference-a100|retrieval-\w+|retry-storm|saturated|shared-\w+|small-tenants|store-partition|azure-conv)/
const SHORT_SCENARIO = '--set durationS=2 --set expect=[] --set variants={} --set parts={}'

/** What stands for something else, whoever reads it. */
const PLACEHOLDERS: readonly (readonly [RegExp, (served: Served) => string])[] = [
  [/\bREQUEST_ID\b|(?<=explain )ID\b/, ({ demo }) => demo.requestId],
  [/\bPOOL\b/, ({ file }) => file.poolId],
  [/(?<=unseen\.ts )FOLDER\b/, () => 'traces'],
  [/(?<=--config )FILE\b/, () => 'spillway.yaml'],
  [/(?<=simulate )NAME --seed N\b/, () => 'baseline --seed 2'],
  [/team-a=sk-…/, () => `team-a=${FILE_TENANT} --key ${FILE_TENANT}`],
  [/\bsk-…/, () => FILE_TENANT],
  [/"…"/, () => '"tried by npm run docs:check"'],
  [/(?<=RETRIEVAL_KEY=)…/, () => 'docs-check-docs-check'],
  [/https:\/\/staging\.example\b/, ({ file }) => `http://127.0.0.1:${file.port}`],
  // The second release is in the configuration file here.
  [/--release 2(?= --replica)/, () => '--release 3'],
  // No host of an example is looked up: nothing listens on that port.
  [/http:\/\/gpu-\d+:8000/, () => 'http://127.0.0.1:1'],
]

/** Commands of which the text gives the name alone: they get what they cannot do without. */
const NAMED: readonly (readonly [RegExp, string])[] = [
  [/^npx spillway explain$/, 'npx spillway explain REQUEST_ID'],
  [/^npx spillway record$/, 'npx spillway record day.jsonl --duration 1'],
  [/^npx spillway plan$/, 'npx spillway plan --trace azure-2023-conv-first30min.csv --profile h100-llama-8b --seeds 1'],
  [/^npx spillway rollout resume$/, 'npx spillway rollout resume llama-8b --because "looked into"'],
  [/"platform\.pools\.0\.backend\.profile=\?"$/, '"platform.pools.0.backend.profile=?" 2>&1 | grep h100-llama-8b'],
]

/** What is shortened, by the end of the command: a later row acts on what an earlier one made. */
const SHORTENED: readonly (readonly [RegExp, string])[] = [
  [LONG_SCENARIOS, `$& ${SHORT_SCENARIO}`],
  [
    /(?<=^npx spillway simulate (?:viral-spike-20x|burst .*|baseline --compare|guarded|region-loss --report).*)$/,
    ` ${SHORT_SCENARIO}`,
  ],
  [/(?<=--compare )[^ ,]+,[^ ]+/, 'fifo'],
  [
    /^for load in 1 4 5; do npx spillway simulate azure-conv/,
    `for load in 1; do npx spillway simulate azure-conv ${SHORT_SCENARIO}`,
  ],
  [/^npx spillway simulate my-day\.yaml/, `$& ${SHORT_SCENARIO}`],
  [/(?<=^npx spillway bench .*)--duration \d+/, '--duration 1'],
  [/^npx spillway bench (?!.*--duration).*$/, '$& --duration 1'],
  [/^npx spillway demo$/, '$& --seconds 10'],
  [/(?<=corpus add handbook --from )docs\/$/, 'docs/recipes/add-a-rung.md'],
  [/(?<=locust .*)-t 30s/, '-t 2s'],
]

const SERVES = /^(?:[A-Z_]+=\S* )*npx spillway (?:serve|retrieval|engine(?! (?:learned|fit|validate)))\b(?!.*--help)/
const TESTS = /^(?:\S+=\S+ )?(?:npx vitest run|npx tsc --noEmit && npx vitest run|npm test --|npm run test --)/
const OF_FILE_SERVER =
  /^npx spillway (?:rollout|models add|models list|engine learned|audit verify|config (?:check|print)$|bench .*sk-…)/
/** The suite, and what is part of it. */
const ALWAYS_FILES = /^npm (?:test|run (?:test:long|docs:check|tidy))$/

export function planOf({ text }: Pick<DocCommand, 'text'>, served: Served, isFull: boolean): Plan {
  // Keys of the reader's own go with a server of the reader's own.
  const isOfFileServer = OF_FILE_SERVER.test(text) && !/--help|--config/.test(text)
  const server = isOfFileServer ? 'file' : isOfDemo(text) ? 'demo' : undefined
  const plain = NAMED.reduce((made, [pattern, to]) => made.replace(pattern, to), text.replace(/ +&$/, ''))
  const named = NAMED.some(([pattern]) => pattern.test(text))
  let shell = PLACEHOLDERS.reduce((made, [pattern, to]) => made.replace(pattern, () => to(served)), plain)
  if (shell.startsWith('npm start')) return { shell, way: 'serves', isShort: false, server }
  if (ALWAYS_FILES.test(shell)) return { shell, way: 'files', isShort: false, server }
  if (SERVES.test(shell)) return { shell: onFreePort(shell), way: 'serves', isShort: false, server }
  if (/for port in .*npx spillway engine/.test(shell))
    return { shell: onFreePort(shell.replace(/.*; do (.*) & done$/, '$1')), way: 'serves', isShort: false, server }
  if (shell.startsWith('curl')) shell = curlOf(shell)
  if (TESTS.test(shell)) return { shell, way: isFull ? 'ends' : 'files', isShort: !isFull, server }
  if (shell.startsWith('node bench/')) {
    shell = shell.replace(/ --record$/, ' --json')
    const isWhole = isFull || SHORT_EXPERIMENTS.test(shell)
    return { shell, way: isWhole ? 'ends' : 'begins', isShort: !isWhole, server }
  }
  // A thousand replicas take twenty seconds to set up.
  if (!isFull && /simulate large-fleet/.test(shell)) return { shell, way: 'begins', isShort: true, server }
  const short = isFull ? shell : SHORTENED.reduce((made, [pattern, to]) => made.replace(pattern, to), shell)
  return { shell: short, way: 'ends', isShort: named || short !== shell, server }
}

const isOfDemo = (text: string): boolean =>
  /localhost:8080|127\.0\.0\.1:8080/.test(text) ||
  /^npx spillway (?:explain|refusals|top|me|usage|record|jobs|corpus|bench|demo)\b/.test(text)

const onFreePort = (shell: string): string => {
  const free = shell.replace(/--port \S+/, '--port 0')
  return free.includes('--port') || / serve\b/.test(free) ? free : `${free} --port 0`
}

/** Written short on the pages: the key that a route wants on the demo, and the body of `/infer`. */
function curlOf(shell: string): string {
  const key = /\/(?:metrics|autoscale)/.test(shell) ? ADMIN : /8080\/(?:v1|infer)/.test(shell) ? TENANT : undefined
  const header = key === undefined || /authorization:/.test(shell) ? '' : ` -H 'authorization: Bearer ${key}'`
  const body = shell.endsWith('/infer')
    ? ` -H 'content-type: application/json' -d '{"tenant_id":"acme","tokens_requested":4,"priority_bid":1}'`
    : ''
  return `${shell.replace(/^curl/, 'curl -sS --fail-with-body')}${header}${body}`
}
