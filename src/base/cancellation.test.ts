import { expect, it } from 'vitest'
import { Cancellation } from './cancellation.ts'

it('tells every listener once, in order, why', () => {
  const cancellation = new Cancellation()
  const heard: string[] = []
  cancellation.onCancel((because) => heard.push(`first ${because}`))
  cancellation.onCancel((because) => heard.push(`second ${because}`))
  expect(cancellation).toMatchObject({ isCancelled: false, because: undefined })
  cancellation.cancel('gone')
  cancellation.cancel('again')
  expect(heard).toEqual(['first gone', 'second gone'])
  expect(cancellation).toMatchObject({ isCancelled: true, because: 'gone' })
})

it('tells a late listener at once', () => {
  const cancellation = new Cancellation()
  cancellation.cancel('gone')
  const heard: string[] = []
  cancellation.onCancel((because) => heard.push(because))()
  expect(heard).toEqual(['gone'])
})

it('forgets whoever asks to be forgotten, even by one that is told before it', () => {
  const cancellation = new Cancellation()
  const heard: string[] = []
  const forget = [1, 2, 3, 4].map((number) =>
    cancellation.onCancel(() => {
      heard.push(String(number))
      if (number === 1) forget[2]?.()
    }),
  )
  forget[1]?.()
  forget[1]?.()
  cancellation.cancel('gone')
  forget[0]?.()
  expect(heard).toEqual(['1', '4'])
})

it('tells everybody even if somebody throws, and then throws that on', () => {
  const cancellation = new Cancellation()
  const heard: string[] = []
  cancellation.onCancel(() => {
    throw new Error('broken')
  })
  cancellation.onCancel(() => heard.push('second'))
  expect(() => cancellation.cancel('gone')).toThrow('broken')
  expect(heard).toEqual(['second'])
  expect(cancellation.isCancelled).toBe(true)
})
