/** Where a sequence stands; only `step-share.ts` writes it. Marks are the running sums at the instant of joining. */
export class SequenceTime {
  prefillUs = 0
  decodeUs = 0
  againUs = 0
  aloneUs = 0
  kvTokenUs = 0
  /** Known tokens less turns at joining; the marks count only while the sequence decodes. */
  offset = 0
  joinedTurn = 0
  markA = 0
  markB = 0
  markC = 0
  markT = 0
  markTT = 0
  /** The last chunk: its step, and its share of that. */
  chunkStep = -1
  chunkUs = 0
  chunkAgainUs = 0
  chunkKvTokenUs = 0
}
