// One installer at a time. A lock is a file made with `wx`: whoever makes it holds it, and touches it while at work.
// It is stale when its process is gone (same machine) or has not touched it for a while (another machine, or a
// container with its own process numbers). A stale lock is moved aside and looked at again before it is thrown away:
// of two processes that find it, the slower one may have moved the quicker one's new lock, and then puts it back.
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname } from 'node:path'

const POLL_MS = 200
const TOUCH_MS = 2_000
/** Ten missed touches: a machine that is merely busy is not mistaken for a dead one. */
const STALE_MS = 20_000

export async function takeLock(path, { onWait } = {}) {
  mkdirSync(dirname(path), { recursive: true })
  const owner = JSON.stringify({ host: hostname(), pid: process.pid })
  for (let hasWaited = false; !tryMake(path, owner); hasWaited = true) {
    if (isStale(path)) clearStale(path)
    else {
      if (!hasWaited) onWait?.()
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
    }
  }
  const touching = setInterval(() => touch(path), TOUCH_MS)
  touching.unref()
  return () => {
    clearInterval(touching)
    rmSync(path, { force: true })
  }
}

function tryMake(path, owner) {
  try {
    writeFileSync(path, owner, { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  }
}

function touch(path) {
  try {
    const now = new Date()
    utimesSync(path, now, now)
  } catch {
    // Somebody took it away; the install itself still ends well or badly on its own.
  }
}

function isStale(path) {
  try {
    const idleMs = Date.now() - statSync(path).mtimeMs
    // A lock that was made a moment ago may not have its owner written yet.
    if (idleMs < TOUCH_MS) return false
    const { host, pid } = JSON.parse(readFileSync(path, 'utf8') || '{}')
    return idleMs > STALE_MS || (host === hostname() && !isAlive(pid))
  } catch (error) {
    return error instanceof SyntaxError
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function clearStale(path) {
  const aside = `${path}.${process.pid}`
  try {
    renameSync(path, aside)
    if (!isStale(aside)) linkSync(aside, path)
    rmSync(aside, { force: true })
  } catch {
    // Another process was quicker.
  }
}
