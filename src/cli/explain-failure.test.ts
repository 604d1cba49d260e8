import { expect, it } from 'vitest'
import { ConfigError } from '../config/config-error.ts'
import { UsageError } from './command.ts'
import { explainFailure } from './explain-failure.ts'

const system = (code: string, more: object = {}) => Object.assign(new Error(`${code}: bad`), { code, ...more })

it.each([
  [
    system('EADDRINUSE', { port: 80, address: '::1' }),
    /^port 80 on ::1 is in use\. Stop what listens there, or choose another/,
  ],
  [system('EACCES', { syscall: 'listen', port: 80 }), /^no permission to listen on port 80\. Choose a port above 1023/],
  [system('EACCES', { syscall: 'open', path: 'a.yaml' }), /^no permission for a\.yaml\./],
  [system('EADDRNOTAVAIL', { address: '1.2.3.4' }), /^1\.2\.3\.4 is not an address of this machine\./],
  [system('ENOSPC'), /^the disk is full\./],
])('%s is one line without a stack', (error, line) => {
  const { lines, exitCode } = explainFailure(error)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(line)
  expect(lines[0]).not.toContain('\n')
  expect(exitCode).toBe(1)
})

it('keeps mistakes of the person and of the configuration apart', () => {
  expect(explainFailure(new UsageError('no.'))).toEqual({ lines: ['no.'], exitCode: 2 })
  expect(explainFailure(new ConfigError(['a.', 'b.']))).toEqual({ lines: ['a.', 'b.'], exitCode: 1 })
})

it('shows the stack of a mistake of ours', () => {
  const { lines, exitCode } = explainFailure(new TypeError('oops'))
  expect(lines[0]).toMatch(/report/)
  expect(lines[1]).toMatch(/TypeError: oops\n {4}at /)
  expect(exitCode).toBe(1)
})
