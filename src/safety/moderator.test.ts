import { expect, it } from 'vitest'
import { HARM_KINDS } from '../domain/harm.ts'
import { loadSafetyModels } from './models/fs-safety-models.ts'
import { EmbeddedModerator } from './moderator.ts'

const models = loadSafetyModels()

it('says what the models say, of the text as it reads', async () => {
  const moderator = new EmbeddedModerator(
    models,
    (text) => text.replaceAll('\u200b', ''),
    async () => {},
  )
  const text = 'They undressed and had passionate sex all night.'
  const harms = await moderator.harmsOf(text.split('').join('\u200b'))
  expect(Object.keys(harms)).toEqual([...HARM_KINDS])
  for (const kind of HARM_KINDS) {
    expect(harms[kind].score).toBe(models.get(kind).score(text))
    expect(harms[kind].isFound).toBe(harms[kind].score >= models.get(kind).scoreMin)
  }
  expect(harms.sexual.isFound).toBe(true)
})

it('lets others go first while it reads a long text, and never for a short one', async () => {
  let pauses = 0
  const moderator = new EmbeddedModerator(
    models,
    (text) => text,
    async () => {
      pauses++
    },
  )
  await moderator.harmsOf('A short text.')
  expect(pauses).toBe(0)
  await moderator.harmsOf('We ship your order tomorrow. '.repeat(4_000))
  expect(pauses).toBeGreaterThanOrEqual(5)
})
