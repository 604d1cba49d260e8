import { connect, type Server } from 'node:net'

/**
 * A process in a network namespace that accepts on listeners of the namespace outside and connects to an address inside.
 * A listener belongs to the namespace in which it was opened, whoever accepts on it. The relay ends with the pipe to the
 * test that started it.
 */
interface Inside {
  readonly hostname: string
  readonly port: number
}

process.on('message', ({ hostname, port }: Inside, listener: unknown) => {
  ;(listener as Server).on('connection', (outer) => {
    const inner = connect(port, hostname)
    inner.pipe(outer).pipe(inner)
    outer.on('error', () => inner.destroy()).on('close', () => inner.destroy())
    inner.on('error', () => outer.destroy()).on('close', () => outer.destroy())
  })
})
process.on('disconnect', () => process.exit(0))
