/**
 * Milliseconds of processor time that this thread spends on some work. Unlike time on the wall, it is the same however
 * busy the machine is.
 */
export async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.threadCpuUsage()
  await work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}
