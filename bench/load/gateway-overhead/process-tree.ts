/** What the kernel says of a process and its descendants. Linux. */
import { readdirSync, readFileSync } from 'node:fs'

/** The kernel reports process times in ticks of 1/100 s (USER_HZ) on every Linux platform that Node supports. */
export const TICK_SECONDS = 0.01

/** A process and all its descendants. */
export function familyOf(pid: number): number[] {
  const family = [pid]
  try {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      const kids = readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean)
      for (const kid of kids) family.push(...familyOf(Number(kid)))
    }
  } catch {
    // A thread or process that ended between the listing and the reading.
  }
  return family
}

/** CPU time of a process tree, including descendants that have ended and were waited for. */
export function cpuSeconds(pid: number): number {
  let ticks = 0
  for (const member of familyOf(pid)) {
    try {
      // The name in parentheses may hold spaces; utime, stime, cutime and cstime are fields 14 to 17, 11 after the name's end.
      const fields = readFileSync(`/proc/${member}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
      for (const field of fields.slice(11, 15)) ticks += Number(field)
    } catch {
      // Ended: its time is in its parent's cutime.
    }
  }
  return ticks * TICK_SECONDS
}

export interface Memory {
  /** The largest process of the tree: the gateway process itself, without its launcher or helpers. */
  readonly processMb: number
  readonly treeMb: number
}

export function residentMemory(pid: number): Memory {
  let processMb = 0
  let treeMb = 0
  for (const member of familyOf(pid)) {
    try {
      const match = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${member}/status`, 'utf8'))
      const mb = (Number(match?.[1] ?? 0) * 1024) / 1e6 // the kernel's kB are 1024 bytes
      processMb = Math.max(processMb, mb)
      treeMb += mb
    } catch {
      // Ended in the meantime.
    }
  }
  return { processMb, treeMb }
}
