/**
 * Gateways that share one durable store: who is there, what each has counted, and what one asks the others. Nothing here
 * is waited for by a client's request; `explain` is.
 */
export interface GatewayStore {
  /** This gateway is there. Answers which others are, and what they ask that it has not answered yet. */
  beat(gatewayId: string): Promise<GatewayBeat>
  /** This gateway ends. */
  leave(gatewayId: string): Promise<void>
  /** Writes this gateway's totals where they are newer; answers those of all others on the same models. */
  exchange(gatewayId: string, told: readonly ToldTally[]): Promise<readonly HeardTally[]>
  /** False when too many questions are open. */
  ask(question: GatewayQuestion & { readonly askedBy: string }): Promise<boolean>
  answer(gatewayId: string, questionId: string, body: string): Promise<void>
  answersTo(questionId: string): Promise<readonly string[]>
  /** The secret of this name that all gateways have: the first that was offered. Kept for ever. */
  secret(name: string, offered: string): Promise<string>
  /** The question and its answers are not needed any more. */
  drop(questionId: string): Promise<void>
}

export interface GatewayBeat {
  readonly otherIds: readonly string[]
  readonly questions: readonly GatewayQuestion[]
}

export interface GatewayQuestion {
  readonly id: string
  readonly kind: string
  readonly body: unknown
}

export interface ToldTally {
  readonly model: string
  /** Grows with each write of one gateway: a late one changes nothing. */
  readonly serial: number
  readonly body: unknown
}

export interface HeardTally {
  readonly model: string
  readonly gatewayId: string
  /** As it was written; whoever reads it checks it. */
  readonly body: unknown
}
