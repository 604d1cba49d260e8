import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { lockFolder } from './fs-store-lock.ts'

let root: string
let folder: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'spillway-lock-'))
  folder = join(root, 'store')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

it('a folder has one owner, who gives it back', () => {
  const unlock = lockFolder(folder, process.pid)
  expect(readFileSync(`${folder}.lock`, 'utf8')).toMatch(new RegExp(`^${process.pid} \\d+$`))
  unlock()
  expect(existsSync(`${folder}.lock`)).toBe(false)
})

it('another process that runs keeps it, and is named; one that died does not', async () => {
  const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], { stdio: 'ignore' })
  await new Promise((resolve) => other.once('spawn', resolve))
  const pid = other.pid as number
  lockFolder(folder, pid)
  expect(() => lockFolder(folder, process.pid)).toThrow(`in use by process ${pid}`)
  other.kill('SIGKILL')
  await new Promise((resolve) => other.once('exit', resolve))
  const unlock = lockFolder(folder, process.pid)
  expect(readFileSync(`${folder}.lock`, 'utf8')).toContain(String(process.pid))
  unlock()
})

it('a number that came again, a mark of our own and rubbish are taken over', () => {
  for (const mark of [`${process.ppid} 1`, 'rubbish', '', '-1 0']) {
    writeFileSync(`${folder}.lock`, mark)
    lockFolder(folder, process.pid)()
  }
  lockFolder(folder, process.pid)
  lockFolder(folder, process.pid)()
  expect(existsSync(`${folder}.lock`)).toBe(false)
})
