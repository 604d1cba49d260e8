import type { Cell, Offence } from './grid.ts'

const CHAT: Offence = {
  prompt: 100,
  answer: 8_000,
  maxTokens: 'unset',
  client: 'stays',
  band: 'standard',
  replicas: 1,
  times: 10,
  from: 'key',
}

/** Two calm tenants on one replica, four chats a second each. */
const POINT = { calmPerS: 4 } as const

/** Points at which calm tenants were seen to lose: found in live trials and in virtual time, traced, and kept by name. */
export const TRACED_POINTS: readonly Cell[] = [
  { ...POINT, id: 'answers-8k-slow', offence: CHAT, ratePerS: 4 },
  { ...POINT, id: 'answers-8k-long-run', offence: CHAT, ratePerS: 4, seconds: 420 },
  { ...POINT, id: 'answers-8k-fast', offence: CHAT, ratePerS: 30 },
  { ...POINT, id: 'answers-2k-fast', offence: { ...CHAT, answer: 2_000 }, ratePerS: 30 },
  { ...POINT, id: 'long-among-short', offence: { ...CHAT, answer: 'mixed30' }, ratePerS: 30 },
  { ...POINT, id: 'prompts-16k', offence: { ...CHAT, prompt: 16_000, answer: 50 }, ratePerS: 10 },
  { ...POINT, id: 'offline-30k', offence: { ...CHAT, prompt: 30_000, answer: 50, band: 'offline' }, ratePerS: 10 },
  { ...POINT, id: 'leavers-30k', offence: { ...CHAT, prompt: 30_000, answer: 50 }, ratePerS: 10, leaveAfterMs: 800 },
]
