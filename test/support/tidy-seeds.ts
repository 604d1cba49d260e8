/** Small trees that break a rule, each with words that the rule's message must contain, and trees that only seem to. */

export type Files = Readonly<Record<string, string>>
export type Seed = readonly [files: Files, says: string]

const inPolicy = (code: string, says: string): Seed => [{ 'src/policy/limits/a.ts': code }, says]

// ── Who may import whom ────────────────────────────────────────────────────────────────────────────────────────────

export const IMPORTS_THAT_BREAK: readonly Seed[] = [
  [{ 'src/domain/a.ts': "import { b } from '../policy/limits/b.ts'" }, 'domain sees base'],
  [{ 'src/policy/limits/a.ts': "import type { b } from '../fairness/b.ts'" }, 'imports src/policy/fairness/b.ts'],
  [{ 'src/policy/limits/a.ts': "const b: import('../fairness/b.ts').B = 1" }, 'imports src/policy/fairness/b.ts'],
  [{ 'src/store/a.ts': "import type { b } from '../lifecycle/platform.ts'" }, 'imports src/lifecycle/platform.ts'],
  [{ 'src/store/a.ts': "import { b } from '../lifecycle/ports.ts'" }, 'imports src/lifecycle/ports.ts'],
  [{ 'src/store/a.ts': "import { type b } from '../lifecycle/ports.ts'" }, 'imports src/lifecycle/ports.ts'],
  [{ 'src/store/a.ts': "export const b = await import('../telemetry/journal.ts')" }, 'src/telemetry/journal.ts'],
  [{ 'src/store/a.ts': 'export const b = import(`../telemetry/journal.ts`)' }, 'src/telemetry/journal.ts'],
  [{ 'src/store/a.ts': "new URL('../telemetry/journal.ts', import.meta.url)" }, 'src/telemetry/journal.ts'],
  [{ 'src/store/a.ts': "export * from '../telemetry/journal.ts'" }, 'imports src/telemetry/journal.ts'],
  [{ 'src/store/a.ts': "import b = require('../telemetry/journal.ts')" }, 'imports src/telemetry/journal.ts'],
  [{ 'src/store/a.ts': "; /* */ import /* */ b, {\n  c,\n} from /* */ '../cli/d.ts'" }, 'a.ts:1 imports src/cli/d.ts'],
  [{ 'src/main/a.ts': "import '../cli/cli.ts'" }, 'imports src/cli/cli.ts'],
  [
    { 'src/gateway/a.ts': "import { Dispatcher } from '../policy/dispatch/dispatcher.ts'" },
    'policy/dispatch/dispatcher',
  ],
  [{ 'src/gateway/a.ts': "import type { A } from '../policy/admission/facts.ts'" }, 'policy/admission/facts.ts'],
  [{ 'src/gateway/a.ts': "import { Turnstile } from '../lifecycle/turnstile.ts'" }, 'lifecycle/turnstile.ts'],
  [{ 'src/engine/a.ts': "import type { Tenant } from '../domain/tenant.ts'" }, 'imports src/domain/tenant.ts'],
  [{ 'src/lifecycle/a.ts': "import { b } from '../../test/support/b.ts'" }, 'imports test/support/b.ts'],
  [{ 'src/lifecycle/a.ts': "import { b } from './b.test.ts'" }, 'imports src/lifecycle/b.test.ts'],
  [{ 'src/surprise/a.ts': 'export const a = 1' }, 'no row for surprise'],
  [{ 'src/policy/surprise/a.ts': 'export const a = 1' }, 'no row for policy/surprise'],
]

export const IMPORTS_THAT_PASS: readonly Files[] = [
  { 'src/store/a.ts': "import type { b } from '../lifecycle/ports.ts'\n// import { c } from '../cli/c.ts'" },
  { 'src/store/a.ts': "export const a = `import { c } from '../cli/c.ts'`" },
  { 'src/engine/a.ts': "import type { Delta } from '../domain/delta.ts'" },
  { 'src/engine/calibration/a.ts': "import { b } from '../b.ts'\nimport { c } from '../../base/c.ts'" },
  { 'src/gateway/routes/a.ts': "import { serveRequest } from '../../lifecycle/serve-request.ts'" },
  { 'src/domain/a.test.ts': "import { b } from '../policy/limits/b.ts'" },
]

// ── Who may take what from outside ─────────────────────────────────────────────────────────────────────────────────

export const OUTSIDE_THAT_BREAKS: readonly Seed[] = [
  [{ 'src/policy/limits/live-a.ts': 'export const a = 1' }, 'has no live- files'],
  [{ 'src/domain/http-a.ts': 'export const a = 1' }, 'has no http- files'],
  [{ 'src/lifecycle/fleet/pg-a.ts': 'export const a = 1' }, 'has no pg- files'],
  [{ 'src/engine/fs-a.ts': 'export const a = 1' }, 'has no fs- files'],
  [{ 'src/sim/live-a.ts': 'export const a = 1' }, 'has no live- files'],
  // Time.
  inPolicy('export const a = () => Date.now()', '(clock)'),
  inPolicy('export const a = () => Date()', '(clock)'),
  inPolicy('export const a = new Date', '(clock)'),
  inPolicy('const b = []\nexport const a = new Date(...b)', '(clock)'),
  inPolicy("export const a = Date['now']()", '(clock)'),
  inPolicy('export const a = Date?.now!()', '(clock)'),
  inPolicy("export const a = performance['now']()", '(clock)'),
  inPolicy('export const a = process.hrtime.bigint()', '(clock)'),
  inPolicy('export const a = Intl.DateTimeFormat().format()', '(clock)'),
  inPolicy("export const a = (what: 'now') => Date[what]()", 'use of Date.? (unknown global)'),
  inPolicy('const { now } = Date\nexport const a = now()', 'use of Date (unknown global)'),
  inPolicy('export const a = { Date }', 'use of Date (unknown global)'),
  inPolicy('export const a = (b = Date.now()) => b', '(clock)'),
  inPolicy('export class A extends Date {}', 'use of Date (unknown global)'),
  inPolicy('export const a = Reflect.construct(Date, [])', 'use of Date (unknown global)'),
  inPolicy('declare const Date: { now(): number }\nexport const a = Date.now()', '(clock)'),
  inPolicy('{ const Date = { now: () => 1 } }\nexport const a = Date.now()', '(clock)'),
  inPolicy('export const a = (b: Date) => b.getHours()', '(locale and time zone)'),
  inPolicy('export const a = (b: number) => b.toLocaleString()', '(locale and time zone)'),
  inPolicy('export const a = (b: string, c: string) => b.localeCompare(c)', '(locale and time zone)'),
  // Timers and waiting.
  [{ 'src/gateway/a.ts': 'setTimeout(() => {}, 1)' }, '(timers)'],
  [{ 'src/gateway/a.ts': 'export const a = AbortSignal.timeout(1)' }, '(timers)'],
  inPolicy('queueMicrotask(() => {})', '(waiting)'),
  inPolicy('export const a = Promise.resolve(1)', '(waiting)'),
  inPolicy('export async function a() {}', '(waiting)'),
  inPolicy('for await (const b of []) b()', '(waiting)'),
  [{ 'src/gateway/a.ts': "import { setTimeout } from 'node:timers/promises'" }, "import of 'node:timers/promises'"],
  // Randomness.
  [{ 'src/telemetry/a.ts': 'export const a = `$' + '{Math.random()}`' }, '(randomness)'],
  inPolicy("export const a = Math['random']()", '(randomness)'),
  inPolicy('const { random } = Math\nexport const a = random()', 'use of Math (unknown global)'),
  inPolicy('export const a = crypto.randomUUID()', '(randomness)'),
  [{ 'src/gateway/a.ts': "import { randomUUID } from 'node:crypto'" }, '(node:crypto#randomUUID)'],
  [{ 'src/gateway/a.ts': "import * as a from 'node:crypto'" }, '(node:crypto#ImportNamespaceSpecifier)'],
  // The process and its surroundings.
  [{ 'src/gateway/a.ts': 'export const a = process.env' }, '(environment)'],
  [{ 'src/cli/a.ts': 'export const a = process.env' }, '(environment)'],
  [{ 'src/cli/a.ts': 'const b = process\nexport const a = b.env' }, '(whole process)'],
  [{ 'src/cli/a.ts': "export const a = process.binding('fs')" }, '(unseen code)'],
  [{ 'src/cli/a.ts': "export const a = process.getBuiltinModule('fs')" }, '(unseen code)'],
  inPolicy('export const a = globalThis.process.env', '(unseen code)'),
  inPolicy("export const a = globalThis['Date'].now()", '(unseen code)'),
  [{ 'src/main/a.ts': "console.log('a')" }, '(console)'],
  [{ 'src/cli/a.ts': "console.log('a')" }, '(console)'],
  inPolicy('export const a = navigator.hardwareConcurrency', '(network)'),
  [{ 'src/backends/a.ts': "export const a = () => fetch('http://b')" }, '(network)'],
  inPolicy('export const a = new WeakRef({})', 'use of WeakRef (unknown global)'),
  // Code and modules that nobody sees.
  inPolicy("export const a = eval('1')", '(unseen code)'),
  inPolicy("export const a = new Function('return Date.now()')", '(unseen code)'),
  inPolicy("export const a = (() => {}).constructor('return process')()", '(unseen code)'),
  inPolicy("export const a = require('node:fs')", '(unseen code)'),
  inPolicy("export const a = import.meta.resolve('./b.ts')", '(unseen code)'),
  [{ 'src/store/a.ts': 'export const a = (b: string) => import(b)' }, '(computed import)'],
  [{ 'src/store/a.ts': 'export const a = (b: string) => import(`pg-$' + '{b}`)' }, '(computed import)'],
  [{ 'src/cli/a.ts': "import { createRequire } from 'node:module'" }, '(node:module#createRequire)'],
  [{ 'src/store/fs-a.ts': "import { createRequire } from 'node:module'" }, '(node:module#createRequire)'],
  [{ 'src/store/a.ts': "import a = require('pg')" }, '(pg)'],
  // Packages and modules of Node.
  inPolicy("import { Pool } from 'pg'", '(pg)'),
  inPolicy("import type { Pool } from 'pg'", '(pg)'),
  inPolicy("import { Type } from 'typebox'", '(typebox)'),
  inPolicy("import { join } from 'node:path'", '(node:path#join)'),
  inPolicy("import process from 'node:process'", '(node:process#ImportDefaultSpecifier)'),
  [{ 'src/store/a.ts': "import { Pool } from 'pg'" }, '(pg)'],
  [{ 'src/store/a.ts': "export const a = await import('pg')" }, '(pg)'],
  [{ 'src/store/a.ts': "export { Pool } from 'pg'" }, '(pg)'],
  [{ 'src/store/fs-a.ts': "import { Pool } from 'pg'" }, '(pg)'],
  [{ 'src/store/a.ts': "import { readFileSync } from 'node:fs'" }, '(node:fs#readFileSync)'],
  [{ 'src/store/a.ts': "import 'node:fs'" }, '(node:fs#*)'],
  [{ 'src/store/a.ts': "import { readFileSync } from 'fs'" }, '(fs)'],
  [{ 'src/store/a.ts': "import a from '/etc/a.ts'" }, "import of '/etc/a.ts'"],
  [{ 'src/backends/a.ts': "import { Pool } from 'undici'" }, '(undici)'],
  [{ 'src/wire/a.ts': "import a from '../../bench/results/a.json' with { type: 'json' }" }, '(bench/results/a.json)'],
]

export const OUTSIDE_THAT_PASSES: readonly Files[] = [
  { 'src/policy/limits/a.ts': 'export const a = (b: object) => structuredClone(new Map([[Math.max(1, 2), b]]))' },
  { 'src/policy/limits/a.ts': 'export const a = (at: number) => new Date(at).toISOString() + Date.UTC(2020)' },
  { 'src/policy/limits/a.ts': 'export const a = (Date: { now(): number }) => Date.now()' },
  {
    'src/policy/limits/a.ts':
      'export const a = (b: { now: number; fetch?: string }) => ({ now: b.now, process: b.fetch })',
  },
  { 'src/policy/limits/a.ts': 'export interface A { readonly window: Promise<Buffer>; fetch(): Response }' },
  { 'src/policy/limits/a.ts': 'export function a() { return b(); function b() { return arguments.length } }' },
  { 'src/policy/limits/a.ts': "// Date.now()\nexport const a = 'Math.random' + /process.env/.source" },
  { 'src/policy/limits/a.test.ts': 'export const a = Date.now()' },
  { 'src/sim/a.ts': "export const a = (b: number) => b.toLocaleString('en-US')" },
  { 'src/base/live-a.ts': 'export const a = () => setTimeout(() => {}, performance.now())' },
  { 'src/store/fs-a.ts': "import { readFileSync } from 'node:fs'" },
  { 'src/store/a.ts': "import type { Stats } from 'node:fs'\nimport type { Pool } from 'pg'" },
  { 'src/config/a.ts': "import { Value } from 'typebox/value'" },
  { 'src/gateway/a.ts': "import { hash } from 'node:crypto'\nexport const a = (b: unknown) => b instanceof File" },
  { 'src/cli/a.ts': 'process.exit(1)' },
]

// ── One place, one name, one writer ────────────────────────────────────────────────────────────────────────────────

export const RE_EXPORTS: readonly Seed[] = [
  [{ 'src/base/a.ts': "export * from './b.ts'" }, './b.ts'],
  [{ 'src/base/a.ts': "export * as b from './b.ts'" }, './b.ts'],
  [{ 'src/base/a.ts': "export type { B } from './b.ts'" }, './b.ts'],
  [{ 'src/base/a.ts': "export { b as c } from './b.ts'" }, './b.ts'],
  [{ 'src/base/a.ts': "import { b as c } from './b.ts'\nexport { c }" }, 're-exports c'],
  [{ 'src/base/a.ts': "import { b } from './b.ts'\nexport { b as c }" }, 're-exports c'],
  [{ 'src/base/a.ts': "import { b } from './b.ts'\nexport const c = b" }, 're-exports c'],
  [{ 'src/base/a.ts': "import { b } from './b.ts'\nconst d = b as unknown\nexport { d as c }" }, 're-exports c'],
  [{ 'src/base/a.ts': "import * as b from './b.ts'\nexport const c = b.d" }, 're-exports c'],
  [{ 'src/base/a.ts': "import type { B } from './b.ts'\nexport type C = B" }, 're-exports C'],
  [{ 'src/base/a.ts': "import b from './b.ts'\nexport default b" }, 're-exports default'],
  [{ 'src/base/a.ts': "import * as b from './b.ts'\nexport import c = b.d" }, 're-exports c'],
]

export const NOT_RE_EXPORTS: readonly Files[] = [
  {
    'src/base/a.ts':
      "import { b } from './b.ts'\nexport const c = b()\nexport const d = b.size\nexport const e = { b }",
  },
  {
    'src/base/a.ts':
      "import type { B } from './b.ts'\nexport type C = B<1> | undefined\nexport interface D extends B {}",
  },
  { 'src/base/a.ts': 'const b = 1\nexport { b as c }' },
]

export const TICKET_WRITES: readonly Seed[] = [
  [{ 'src/gateway/a.ts': "export const a = (ticket: { b: string }) => { ticket.b = 'c' }" }, 'writes'],
  [{ 'src/gateway/a.ts': 'class A { #ticket = { b: { c: 1 } }; d() { this.#ticket.b.c++ } }' }, 'writes'],
  [{ 'src/sim/a.ts': 'export const a = (b: { ticket: { c?: 1 } }) => { delete b.ticket.c }' }, 'writes'],
  [{ 'src/sim/a.ts': 'export const a = (oldTicket: { c: number }) => { [oldTicket.c] = [1] }' }, 'writes'],
  [{ 'src/sim/a.ts': 'export const a = (ticket: object) => Object.assign(ticket, { b: 1 })' }, 'writes'],
  [
    { 'src/sim/a.ts': "import type { Ticket } from '../lifecycle/ticket.ts'\nconst a = (b: Ticket) => (b.c ??= 1)" },
    'writes',
  ],
  [
    {
      'src/sim/a.ts':
        "import type { Ticket as T } from '../lifecycle/ticket.ts'\nclass A { b?: T; c() { this.b!.d = 1 } }",
    },
    'writes',
  ],
  [
    { 'src/sim/a.ts': "import type { Attempt } from '../lifecycle/ticket.ts'\nconst a = (b: Attempt) => b.end()" },
    'writes',
  ],
  [{ 'src/sim/a.ts': "import { Ticket } from '../lifecycle/ticket.ts'" }, 'imports more than types'],
]

export const NOT_TICKET_WRITES: readonly Files[] = [
  { 'src/lifecycle/rollout/a.ts': 'export const a = (ticket: { b: number }) => { ticket.b = 1 }' },
  { 'src/sim/a.ts': "import type { Ticket } from '../lifecycle/ticket.ts'\nconst a = (b: Ticket) => b.c === 1" },
  { 'src/sim/a.ts': 'let ticket = 1\nticket = 2\nconst a = { ticket }\na.ticket = 3' },
]
