/** Kinds of harm that a text may hold, as far as anything here can tell them apart. */
export const HARM_KINDS = ['sexual', 'hate', 'harassment', 'self-harm', 'violence'] as const
export type HarmKind = (typeof HARM_KINDS)[number]

/** What a moderator says of one text, without the text. */
export interface HarmFinding {
  /** 0 … 1. */
  readonly score: number
  readonly isFound: boolean
}

export type HarmFindings = Readonly<Record<HarmKind, HarmFinding>>
