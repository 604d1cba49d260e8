import { ConfigError } from '../config/config-error.ts'
import { AdminRefused, UsageError } from './command.ts'

/** What a failed command prints, and its exit code: 2 for a mistake in the typed command, 1 for everything else. */
export interface Failure {
  readonly lines: readonly string[]
  readonly exitCode: number
}

export function explainFailure(error: unknown): Failure {
  if (error instanceof AdminRefused) return { lines: [error.message], exitCode: 1 }
  if (error instanceof UsageError) return { lines: [error.message], exitCode: 2 }
  if (error instanceof ConfigError) return { lines: error.problems, exitCode: 1 }
  const system = error as NodeJS.ErrnoException & { port?: number; address?: string }
  const explained = SYSTEM_ERRORS[system?.code ?? '']?.(system)
  if (explained !== undefined) return { lines: [explained], exitCode: 1 }
  // Any other error is a bug in Spillway: print the stack for the report.
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return { lines: ['this should not have happened. Please report it with the lines below.', stack], exitCode: 1 }
}

type SystemError = NodeJS.ErrnoException & { readonly port?: number; readonly address?: string }

const SYSTEM_ERRORS: Readonly<Record<string, (error: SystemError) => string>> = {
  EADDRINUSE: ({ port, address }) =>
    `port ${port} on ${address} is in use. Stop what listens there, or choose another port with --port or PORT.`,
  EADDRNOTAVAIL: ({ address }) =>
    `${address} is not an address of this machine. Choose another with --host or HOST; 0.0.0.0 means all.`,
  ENOTFOUND: (error) => `the address cannot be resolved (${error.message}). Choose another with --host or HOST.`,
  EACCES: (error) =>
    error.syscall === 'listen' || error.syscall === 'bind'
      ? `no permission to listen on port ${error.port}. Choose a port above 1023 with --port or PORT.`
      : `no permission for ${error.path ?? error.message}. Give this user access to it.`,
  EPERM: (error) => `not permitted: ${error.path ?? error.message}. Give this user access to it.`,
  EROFS: (error) => `${error.path ?? 'the file system'} is read-only. Choose a place that can be written.`,
  ENOSPC: () => 'the disk is full. Free some room, then try again.',
  EMFILE: () => 'too many open files. Raise the limit (ulimit -n), then try again.',
}
