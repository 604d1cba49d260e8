// An actuator's command: brings a number of `spillway engine` processes to SPILLWAY_REPLICAS_TO.
//   node scale-engines.mjs FOLDER CLI PORT …       FOLDER keeps PORT.pid of each engine that runs, and a line for each call
import { spawn } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const [folder, cli, ...ports] = process.argv.slice(2)
const to = Number(process.env.SPILLWAY_REPLICAS_TO)
const leaving = (process.env.SPILLWAY_LEAVING ?? '').split('\n')
const pidFile = (port) => join(folder, `${port}.pid`)
const isLeaving = (port) => leaving.some((id) => id.endsWith(`:${port}`))

appendFileSync(join(folder, 'calls'), `${process.env.SPILLWAY_REPLICAS_FROM} ${to}\n`)
const running = ports.filter((port) => existsSync(pidFile(port)))
const going = running.toSorted((a, b) => Number(isLeaving(b)) - Number(isLeaving(a))).slice(0, running.length - to)
for (const port of to < running.length ? going : []) {
  process.kill(Number(readFileSync(pidFile(port), 'utf8')))
  rmSync(pidFile(port))
}
for (const port of ports.filter((one) => !running.includes(one)).slice(0, Math.max(0, to - running.length))) {
  const words = [cli, 'engine', '--model', 'sim', '--port', port, '--profile', 'h100-llama-8b']
  const engine = spawn(process.execPath, words, { detached: true, stdio: 'ignore' })
  writeFileSync(pidFile(port), String(engine.pid))
  engine.unref()
}
