/**
 * A transit is a request whose body and answer pass through unread: speech, transcripts, pictures, scores of documents,
 * tokens of a text. It is admitted, counted and cancelled like any other request; what is in it, only its engine knows.
 */

/** Groups of endpoints that a model may serve by transit; also words of a key's terms. */
export const TRANSIT_ROUTES = ['audio', 'images', 'rerank', 'tokenize'] as const

export type TransitRoute = (typeof TRANSIT_ROUTES)[number]

export interface Transit {
  /** `moderations`: a question of the platform's own to a guard model. */
  readonly route: TransitRoute | 'moderations'
  /** The engine's path: `/audio/speech`. */
  readonly path: string
  /** The path begins at the server's root, beside the version and not under it: `/tokenize`. */
  readonly isRooted?: boolean
  readonly contentType: string
  /** What the client accepts, in its own words. */
  readonly accept: string | undefined
  readonly body: TransitBody
}

/** The handle through which a backend gets the client's bytes. */
export interface TransitBody {
  /** The bytes come from the client while they go to the engine: how fast says nothing about the engine. */
  readonly isUpload: boolean
  /** Whether the body can be read from its first byte: no longer when bytes have gone that nobody keeps. */
  readonly canOpen: boolean
  /** Begins at the first byte, with this name for the model. One attempt at a time has the body open. */
  open(model: string): OpenBody
}

export interface OpenBody {
  /** Bytes in all; undefined when the client does not say. */
  readonly length: number | undefined
  /** Asks the client for more only when the last piece has been taken. */
  readonly pieces: AsyncIterable<Uint8Array>
  /** Nobody reads any more; a piece that is being waited for does not come. */
  close(): void
}

/** The beginning of an answer that passes through. */
export interface TransitHead {
  readonly status: number
  /** Name, value, name, value. */
  readonly headers: readonly string[]
}
