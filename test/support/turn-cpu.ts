/**
 * The most milliseconds of processor time that one turn of the event loop took while some work ran. Unlike time on the
 * wall, it is the same however busy the machine is.
 */
export async function turnCpuMsMax(work: () => Promise<unknown>): Promise<number> {
  let most = 0
  let before = process.threadCpuUsage()
  let isOver = false
  const look = (): void => {
    const { user, system } = process.threadCpuUsage(before)
    most = Math.max(most, (user + system) / 1_000)
    before = process.threadCpuUsage()
    if (!isOver) setImmediate(look)
  }
  // The first turn of the work counts too: it begins behind a look.
  await new Promise<void>((resolve) => setImmediate(resolve))
  before = process.threadCpuUsage()
  setImmediate(look)
  try {
    await work()
  } finally {
    isOver = true
  }
  look()
  return most
}
