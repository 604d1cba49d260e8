import { expect, it } from 'vitest'
import { explainMissingPart } from './missing-part.ts'

it.each([
  ["Cannot find package '@electric-sql/pglite' imported from /x/a.js", 'ERR_MODULE_NOT_FOUND', '@electric-sql/pglite'],
  ["Cannot find package 'pg' imported from /x/a.js", undefined, 'pg'],
])('%s: says what to install and what to do instead', (message, code, name) => {
  const told = explainMissingPart(Object.assign(new Error(message), code === undefined ? {} : { code }), 'set X')
  expect(told).toContain(`The package ${name} is not there`)
  expect(told).toContain('--include=optional')
  expect(told).toMatch(/, or set X\.$/)
  expect(told).not.toContain('/x/a.js')
})

it.each([
  new Error('it did not open'),
  Object.assign(new Error("Cannot find package 'a'"), { code: 'EACCES' }),
  'text',
])('leaves other errors alone: %s', (error) => expect(explainMissingPart(error, 'set X')).toBeUndefined())
