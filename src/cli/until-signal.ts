/** The first Ctrl-C asks a run to end; a second Ctrl-C ends the process. */
export function untilSignal(): { readonly stop: Promise<void>; readonly forget: () => void } {
  let listener = (): void => {}
  const stop = new Promise<void>((resolve) => {
    listener = () => {
      forget()
      resolve()
    }
  })
  const forget = (): void => {
    process.off('SIGINT', listener)
    process.off('SIGTERM', listener)
  }
  process.on('SIGINT', listener)
  process.on('SIGTERM', listener)
  return { stop, forget }
}
