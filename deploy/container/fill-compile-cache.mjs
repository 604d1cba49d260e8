// Fills Node's compile cache while the image is built: starts each service once, waits until it listens, ends it gently.
//
//   node fill-compile-cache.mjs FOLDER UID
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const [folder = '.', uid = '65532'] = process.argv.slice(2)
const cache = join(folder, 'compile-cache')
/** A start takes a second or two; a build machine may be busy. */
const START_MS_MAX = 120_000

const env = {
  PATH: process.env.PATH,
  LD_LIBRARY_PATH: join(folder, 'lib'),
  NODE_COMPILE_CACHE: cache,
  HOST: '127.0.0.1',
  PORT: '0',
  SPILLWAY_STORE_PATH: 'memory:',
  SPILLWAY_ENGINE_LISTEN_PORT: '0',
  SPILLWAY_RETRIEVAL_LISTEN_PORT: '0',
  RETRIEVAL_KEY: 'only-while-the-image-is-built',
}

function runOnce(...words) {
  return new Promise((resolve, reject) => {
    const child = spawn(join(folder, 'node'), [join(folder, 'bin', 'spillway.mjs'), ...words], {
      cwd: '/tmp',
      env,
      uid: Number(uid),
      gid: Number(uid),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const late = setTimeout(() => child.kill('SIGKILL'), START_MS_MAX)
    let said = ''
    let isTold = false
    const hear = (bytes) => {
      said += bytes
      // Once: a second signal would end it at once.
      if (isTold || !/listen(s|ing) on/.test(said)) return
      isTold = child.kill('SIGTERM')
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('error', reject)
    child.on('close', (code) => {
      clearTimeout(late)
      if (code === 0) resolve()
      else reject(new Error(`spillway ${words.join(' ')} ended with ${code}: ${said}`))
    })
  })
}

for (const words of [['--help'], ['serve'], ['engine'], ['retrieval']]) await runOnce(...words)
const files = readdirSync(cache, { recursive: true }).length
if (files < 100) throw new Error(`the compile cache has ${files} files: too few`)
process.stdout.write(`compile cache: ${files} files\n`)
