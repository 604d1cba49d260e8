import { loadConfig } from '../config/load.ts'
import type { Config } from '../config/schema.ts'
import { wishProblem, wishReader } from '../config/screening-wish.ts'
import type { ScreeningTerms, ScreeningWish } from '../domain/screening.ts'
import { makeOfflineJudge } from '../main/live-screening.ts'
import { type LineFinding, type ScreenedLines, screenLines } from '../main/screen-lines.ts'
import { columnsOf } from './columns.ts'
import {
  CONFIG_FLAG,
  type Command,
  choiceFlag,
  type FlagValues,
  JSON_FLAG,
  textFlag,
  UsageError,
  wholeJson,
} from './command.ts'
import { linesOf } from './fs-lines.ts'

export const screenCommand: Command = {
  name: 'screen',
  summary: 'show what a policy of screening would do to texts, before it goes live',
  about: [
    'Reads a file with one text, or one body in JSON, on each line, and says what the screens would find and what would',
    'follow: of the policy of a tenant (--tenant), of a policy as it is typed (--policy), or of the platform. No server',
    'is needed, no guard model is asked, and no text is printed unless --show is given.',
  ].join('\n'),
  argument: 'FILE',
  flags: {
    config: CONFIG_FLAG,
    tenant: { type: 'string', value: 'NAME', meaning: 'tenant of the configuration whose policy is tried' },
    policy: {
      type: 'string',
      value: 'JSON',
      meaning: 'policy in place of what the settings say, as {"pii":"redact","injection":"block"}',
    },
    direction: { type: 'string', value: 'WORD', meaning: 'input (the default), or output: lines are answers' },
    show: { type: 'boolean', meaning: 'print an example of each finding, in clear' },
    json: JSON_FLAG,
  },
  examples: [
    'spillway screen prompts.jsonl --policy \'{"pii":"redact","injection":"flag"}\'',
    'spillway screen prompts.txt --config spillway.yaml --tenant shop --show',
  ],
  async run(flags, io) {
    const path = textFlag(flags, 'argument')
    if (path === undefined) throw new UsageError('Give the file: spillway screen FILE.')
    const direction = choiceFlag(flags, 'direction', ['input', 'output']) ?? 'input'
    const terms = termsOf(loadConfig({ path: textFlag(flags, 'config') }), flags)
    const report = await screenLines(linesOf(path), {
      terms,
      direction,
      showsText: flags['show'] === true,
      judge: makeOfflineJudge(),
    })
    io.out(flags['json'] === true ? wholeJson({ policy: terms.version, ...report }) : describe(report, terms))
    return 0
  },
}

function termsOf(config: Config, flags: FlagValues): ScreeningTerms {
  const tenantId = textFlag(flags, 'tenant')
  const typed = textFlag(flags, 'policy')
  if (tenantId !== undefined && typed !== undefined) throw new UsageError('Give --tenant or --policy, not both.')
  const tenant = config.tenants.find(({ id }) => id === tenantId)
  if (tenantId !== undefined && tenant === undefined) {
    throw new UsageError(`There is no tenant "${tenantId}" in the configuration.`)
  }
  const wish = typed === undefined ? tenant?.screening : wishOf(config, typed)
  const { screening } = wishReader(config)(wish)
  if (screening === undefined) {
    throw new UsageError(
      'The policy screens nothing. Give one: --policy \'{"pii":"redact"}\', or set `screening` in the configuration.',
    )
  }
  return screening
}

function wishOf(config: Config, typed: string): ScreeningWish {
  let wish: unknown
  try {
    wish = JSON.parse(typed)
  } catch {
    throw new UsageError(`--policy is no JSON: ${typed}. Try: --policy '{"pii":"redact"}'`)
  }
  if (typeof wish !== 'object' || wish === null || Array.isArray(wish))
    throw new UsageError('--policy is no object. Try: --policy \'{"pii":"redact"}\'')
  const problem = wishProblem(config, wish as ScreeningWish)
  if (problem !== undefined) throw new UsageError(`--policy: ${problem.because}.`)
  return wish as ScreeningWish
}

function describe(report: ScreenedLines, { version }: ScreeningTerms): string {
  const { lines, blocked, redacted, flagged, observed, refused, unscreened, findings } = report
  const share = (count: number): string => `${count} (${lines === 0 ? '0' : ((100 * count) / lines).toFixed(1)} %)`
  const hasExamples = findings.some(({ example }) => example !== undefined)
  const heading = ['SCREEN', 'CATEGORY', 'ACTION', 'LINES', 'FINDINGS', 'FIRST', ...(hasExamples ? ['EXAMPLE'] : [])]
  const rows = findings.map((finding) => [
    finding.screen,
    finding.category,
    finding.action,
    share(finding.lines),
    String(finding.count),
    placeOf(finding),
    ...(hasExamples ? [finding.example ?? ''] : []),
  ])
  const binary = Object.entries(unscreened).map(([kind, count]) => `${kind} ${count}`)
  return [
    `Policy ${version}, ${lines} lines: ${share(blocked)} blocked, ${share(redacted)} redacted, ${share(flagged)} flagged, ${share(observed)} observed, ${share(refused)} refused unread.`,
    ...(binary.length === 0 ? [] : [`Lines with what no screen can read: ${binary.join(', ')}.`]),
    ...(rows.length === 0 ? ['Nothing was found.'] : [columnsOf([heading, ...rows])]),
  ].join('\n')
}

const placeOf = ({ firstLine, firstColumn }: LineFinding): string =>
  `line ${firstLine}${firstColumn === undefined ? '' : `:${firstColumn}`}`
