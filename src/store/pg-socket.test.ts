import { expect, it } from 'vitest'
import { SharedLookUps } from './pg-socket.ts'

it('asks for a name once at a time, and gives everybody the result', () => {
  const asked: { name: string; answer: () => void }[] = []
  const lookUps = new SharedLookUps((name, _, found) => {
    asked.push({ name, answer: () => found(null, `address of ${name}`, 4) })
  })
  const told: string[] = []
  const ask = (name: string, family = 0) =>
    lookUps.ask(name, { family }, (error, address) =>
      told.push(error === null && typeof address === 'string' ? address : 'no address'),
    )
  for (let i = 0; i < 100; i++) ask('postgres')
  ask('postgres', 6)
  ask('other')
  expect(asked.map(({ name }) => name)).toEqual(['postgres', 'postgres', 'other'])
  for (const { answer } of asked.splice(0)) answer()
  expect(told).toHaveLength(102)
  expect(told.filter((text) => text === 'address of postgres')).toHaveLength(101)
  // The next one asks anew: an address may have changed.
  ask('postgres')
  expect(asked).toHaveLength(1)
})

it('tells everybody of a failure', () => {
  const lookUps = new SharedLookUps((_, __, found) => found(new Error('not found'), ''))
  const told: string[] = []
  lookUps.ask('a', {}, (error) => told.push(String(error?.message)))
  lookUps.ask('a', {}, (error) => told.push(String(error?.message)))
  expect(told).toEqual(['not found', 'not found'])
})
