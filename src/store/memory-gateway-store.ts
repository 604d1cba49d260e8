import type { GatewayBeat, GatewayQuestion, GatewayStore, HeardTally, ToldTally } from '../domain/gateways.ts'

/** Gateways of one process, for tests and as the plain twin of the SQL ones: whoever does not leave is there. */
const QUESTIONS_MAX = 64

export class MemoryGatewayStore implements GatewayStore {
  readonly #gateways = new Set<string>()
  readonly #tallies = new Map<string, HeardTally & { readonly serial: number }>()
  readonly #secrets = new Map<string, string>()
  readonly #questions = new Map<string, Open>()

  beat(gatewayId: string): Promise<GatewayBeat> {
    this.#gateways.add(gatewayId)
    const questions = [...this.#questions.values()]
      .filter(({ askedBy, answers }) => askedBy !== gatewayId && !answers.has(gatewayId))
      .map(({ question }) => question)
    return Promise.resolve({ otherIds: [...this.#gateways].filter((id) => id !== gatewayId), questions })
  }

  leave(gatewayId: string): Promise<void> {
    this.#gateways.delete(gatewayId)
    return Promise.resolve()
  }

  exchange(gatewayId: string, told: readonly ToldTally[]): Promise<readonly HeardTally[]> {
    const models = new Set(told.map(({ model }) => model))
    const others = [...this.#tallies.values()].filter(
      (known) => known.gatewayId !== gatewayId && models.has(known.model),
    )
    for (const { model, serial, body } of told) {
      const key = `${model} ${gatewayId}`
      const isNewer = serial > (this.#tallies.get(key)?.serial ?? Number.NEGATIVE_INFINITY)
      if (isNewer && body !== null) this.#tallies.set(key, { model, gatewayId, serial, body: structuredClone(body) })
    }
    return Promise.resolve(others.map(({ model, gatewayId: from, body }) => ({ model, gatewayId: from, body })))
  }

  secret(name: string, offered: string): Promise<string> {
    const secret = this.#secrets.get(name) ?? offered
    this.#secrets.set(name, secret)
    return Promise.resolve(secret)
  }

  ask({ askedBy, ...question }: GatewayQuestion & { readonly askedBy: string }): Promise<boolean> {
    if (this.#questions.size >= QUESTIONS_MAX) return Promise.resolve(false)
    this.#questions.set(question.id, { question, askedBy, answers: new Map() })
    return Promise.resolve(true)
  }

  answer(gatewayId: string, questionId: string, body: string): Promise<void> {
    const answers = this.#questions.get(questionId)?.answers
    if (answers?.has(gatewayId) === false) answers.set(gatewayId, body)
    return Promise.resolve()
  }

  answersTo(questionId: string): Promise<readonly string[]> {
    const answers = [...(this.#questions.get(questionId)?.answers ?? [])]
    return Promise.resolve(answers.sort(([a], [b]) => (a < b ? -1 : 1)).map(([, body]) => body))
  }

  drop(questionId: string): Promise<void> {
    this.#questions.delete(questionId)
    return Promise.resolve()
  }
}

interface Open {
  readonly question: GatewayQuestion
  readonly askedBy: string
  readonly answers: Map<string, string>
}
