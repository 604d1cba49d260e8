import type { ConsoleView } from '../console/console-view.ts'
import { fetchFrom, type ServerAccess } from './http-explain.ts'

const EVERY_MS = 1_000

/** What the server shows now. */
export const fetchView = (access: ServerAccess): Promise<ConsoleView> => fetchFrom<ConsoleView>(access, '/console/view')

/** The same once a second, until `stop`. */
export async function* views(access: ServerAccess, stop: Promise<void>): AsyncGenerator<ConsoleView> {
  let isOver = false
  void stop.then(() => {
    isOver = true
  })
  while (!isOver) {
    yield await fetchView(access)
    await Promise.race([stop, new Promise((resolve) => setTimeout(resolve, EVERY_MS))])
  }
}
