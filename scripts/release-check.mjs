// The checklist of a release, as far as a machine can go through it: npm run release:check [-- --offline]
//
// Every line is tried, and the exit code is 1 if one failed. --offline leaves out what asks a registry.
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { lockProblems } from './lockcheck.mjs'
import { ENV_PATH, envExample, PAGE_PATH, settingsPage } from './settings.mjs'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')
const TARBALL_BYTES_MAX = 2_000_000
const INSTALLED_BYTES_MAX = 130_000_000
/** A busy machine starts a server in half a minute. */
const START_MS_MAX = 120_000

const isOffline = process.argv.includes('--offline')
const folder = mkdtempSync(join(tmpdir(), 'spillway-release-'))
const say = (text) => process.stdout.write(`${text}\n`)
const read = (path) => readFileSync(join(ROOT, path), 'utf8')
const { name, version } = JSON.parse(read('package.json'))
const tarball = join(folder, 'out', `${name}-${version}.tgz`)
const megabytes = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`

function run(command, words, cwd = ROOT) {
  const { status, stdout, stderr } = spawnSync(command, words, { cwd, encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 })
  if (status !== 0)
    throw new Error(`${command} ${words[0]}: ${(stderr || stdout).trim().split('\n').slice(-3).join(' ')}`)
  return stdout.trim()
}

function must(isSo, told) {
  if (!isSo) throw new Error(told)
  return told
}

function bytesIn(path) {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + statSync(join(entry.parentPath, entry.name)).size, 0)
}

function installGlobally() {
  const prefix = join(folder, 'whole')
  mkdirSync(prefix)
  run('npm', ['install', '--global', '--prefix', prefix, '--no-audit', '--no-fund', '--ignore-scripts', tarball])
  return prefix
}

/** Serves the demo and reads one streamed answer. */
async function tryDemo(command, words) {
  const empty = mkdtempSync(join(folder, 'empty-'))
  const child = spawn(command, words, { cwd: empty, env: { ...process.env, PORT: '0' }, detached: true })
  try {
    const address = await new Promise((resolve, reject) => {
      let said = ''
      const late = setTimeout(() => reject(new Error(`it does not listen: ${said.slice(-300)}`)), START_MS_MAX)
      const hear = (bytes) => {
        said += bytes
        const found = /listening on (http:\/\/\S+)/.exec(said)?.[1]
        if (found !== undefined) resolve(found)
        if (found !== undefined) clearTimeout(late)
      }
      child.stdout.on('data', hear)
      child.stderr.on('data', hear)
      child.on('error', reject)
      child.on('close', (code) => reject(new Error(`it ended with ${code}: ${said.slice(-300)}`)))
    })
    const response = await fetch(`${address}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk-demo-acme', 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'spill-large',
        stream: true,
        max_tokens: 4,
        messages: [{ role: 'user', content: 'Hello.' }],
      }),
    })
    const text = await response.text()
    return must(text.trimEnd().endsWith('data: [DONE]'), 'a streamed answer from an empty folder')
  } finally {
    process.kill(-child.pid, 'SIGKILL')
  }
}

const CHECKS = [
  {
    what: 'nothing is uncommitted',
    check: () => must(run('git', ['status', '--porcelain']) === '', 'git status is clean'),
  },
  {
    what: 'the changelog has this version',
    check: () => must(read('CHANGELOG.md').includes(`\n## ${version}`), `## ${version}`),
  },
  {
    what: 'the lockfile is good for everybody',
    check: () => {
      const problems = lockProblems(JSON.parse(read('package-lock.json')))
      return must(problems.length === 0, problems[0] ?? 'no address, no script, no gap')
    },
  },
  {
    what: 'pages made from the schema are fresh',
    check: () =>
      must(read(PAGE_PATH) === settingsPage() && read(ENV_PATH) === envExample(), `${PAGE_PATH}, ${ENV_PATH}`),
  },
  {
    what: 'the tarball is small',
    check: () => {
      run(process.execPath, ['scripts/pack.mjs', join(folder, 'out'), '--sbom'])
      const bytes = statSync(tarball).size
      return must(bytes <= TARBALL_BYTES_MAX, `${megabytes(bytes)} of ${megabytes(TARBALL_BYTES_MAX)}`)
    },
  },
  {
    what: 'the bill of materials is whole',
    check: () => {
      const bill = JSON.parse(readFileSync(join(folder, 'out', `${name}-${version}.cdx.json`), 'utf8'))
      const unlicensed = bill.components.filter(({ licenses }) => !licenses?.length).map((part) => part.name)
      must(unlicensed.length === 0, `no licence: ${unlicensed.join(', ')}`)
      const { dependencies, optionalDependencies } = JSON.parse(
        readFileSync(join(folder, 'out', 'package', 'package.json'), 'utf8'),
      )
      const names = new Set(bill.components.map((part) => part.name))
      const absent = Object.keys({ ...dependencies, ...optionalDependencies }).filter((one) => !names.has(one))
      return must(absent.length === 0, absent.join(', ') || `${names.size} packages, each with its licence`)
    },
  },
  {
    what: 'npm i -g: what is installed is small',
    check: () => {
      const bytes = bytesIn(installGlobally())
      return must(bytes <= INSTALLED_BYTES_MAX, `${megabytes(bytes)} of ${megabytes(INSTALLED_BYTES_MAX)}`)
    },
    asksRegistry: true,
  },
  {
    what: 'npm i -g: the demo answers',
    check: () => tryDemo(join(folder, 'whole', 'bin', name), ['serve']),
    asksRegistry: true,
  },
  {
    what: 'npm i --omit=optional: the demo answers',
    check: async () => {
      // In a project: npm leaves nothing out of a global install.
      const place = join(folder, 'small')
      mkdirSync(place)
      run('npm', [
        'install',
        '--prefix',
        place,
        '--no-audit',
        '--no-fund',
        '--ignore-scripts',
        '--omit=optional',
        tarball,
      ])
      return `${await tryDemo(join(place, 'node_modules', '.bin', name), ['serve'])}, ${megabytes(bytesIn(place))}`
    },
    asksRegistry: true,
  },
  {
    what: 'npx in an empty folder: the demo answers',
    check: () => tryDemo('npx', ['--yes', '--package', tarball, name, 'serve']),
    asksRegistry: true,
  },
  {
    what: 'no dependency has a grave known fault',
    check: () => run('npm', ['audit', '--omit=dev', '--audit-level=high', '--package-lock-only']).split('\n').at(-1),
    asksRegistry: true,
  },
]

let failedCount = 0
for (const { what, check, asksRegistry = false } of CHECKS) {
  if (isOffline && asksRegistry) {
    say(`left out  ${what} (it asks a registry)`)
    continue
  }
  try {
    say(`ok        ${what}: ${await check()}`)
  } catch (error) {
    failedCount++
    say(`FAILED    ${what}: ${error.message}`)
  }
}
rmSync(folder, { recursive: true, force: true })
say(`
By hand: .ci/run is green on this commit; base images of deploy/container/Dockerfile are pinned by digest; the images
are built and scanned; the tag v${version} is signed; CI publishes with "npm publish --provenance" and keeps the bill.`)
process.exitCode = failedCount === 0 ? 0 : 1
