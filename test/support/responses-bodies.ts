import { readResponses, toChat } from '../../src/wire/responses-to-chat.ts'

/** Bodies of `/v1/responses`, and what becomes of them. */
const read = (more: object) => {
  const checked = readResponses(Buffer.from(JSON.stringify({ model: 'm', input: 'Hi.', ...more })))
  return checked.kind === 'ok' ? toChat(checked.value.body) : checked
}

export function chatOf(more: object): Record<string, unknown> {
  const chat = read(more)
  if (chat.kind === 'fault') throw new Error(chat.fault.message)
  return chat.value
}

export function faultOf(more: object) {
  const chat = read(more)
  if (chat.kind === 'ok') throw new Error('it was taken')
  return chat.fault
}
