import { isUtf8 } from 'node:buffer'
import type {
  NameFinder,
  ScreenDirection,
  ScreenFinding,
  Screening,
  ScreeningTerms,
  ScreenText,
  TextFinder,
  TextRewriter,
} from '../domain/screening.ts'
import { jsonLeaves } from '../wire/json-leaves.ts'
import { invalidRequest, type WireFault } from '../wire/openai-error.ts'
import { SCREENING_EXCEPTIONS, type ScreenedDialect, TOKEN_LISTS } from '../wire/screening-exceptions.ts'
import { memberText } from '../wire/splice-json.ts'
import { Placeholders } from './placeholders.ts'
import { JsonScreen } from './screen-json.ts'
import { drained, type ScreenWork, TextScreen, WINDOW_LENGTH, withPauses } from './screen-text.ts'

/**
 * Every string of a body, rewritten before anybody else sees it: before it is parsed, so that token counts, prefix
 * hashes, cache keys, mirrors, the journal and engines know only the rewritten text (law L14). Names of properties are
 * strings, too, and so are members that a second one of the same name hides. A body in which nothing is found stays the
 * very same bytes.
 *
 * What is not text is not screened. Prompts in token ids are refused; pictures, audio and files are marked `unscreened`,
 * and refused where the policy says so.
 */
export interface BodyScreens {
  /** The finder of a policy's screens for one direction. */
  readonly finderOf: (terms: ScreeningTerms, direction: ScreenDirection) => TextFinder
  /** For policies with the screen `names`. */
  readonly names?: NameFinder | undefined
  readonly isModel: (name: string) => boolean
  /** The secret that pseudonyms are made with. */
  readonly salt: string
}

export interface BodyAsk {
  readonly dialect: ScreenedDialect
  readonly tenantId: string
  readonly terms: ScreeningTerms
  /** The conversation as the client names it outside the body. */
  readonly session?: string | undefined
}

/** What is known of the screening before the texts of the prompt are put together for the judges. */
export interface FoundInBody extends Pick<Screening, 'terms' | 'found' | 'unscreened'> {
  readonly rewriter: TextRewriter
  readonly placeholders: Placeholders
  /** All strings that may be text, for judges of bodies that have no messages. */
  readonly texts: readonly ScreenText[]
  /** Rewrites JSON that belongs to the request and came from elsewhere: what it goes on from. */
  readonly rewriteJson: (json: string) => Promise<string>
}

/** The screening that a request carries. `readsMore`: texts will be read for it that are not in its body. */
export function screeningOf(
  { terms, found, unscreened, rewriter, placeholders }: FoundInBody,
  texts: readonly ScreenText[],
  readsMore = false,
): Screening {
  const canRestore = terms.isReversible && (placeholders.size > 0 || readsMore)
  return { terms, texts, found, unscreened, rewriter, ...(canRestore && { restorer: placeholders }) }
}

export type ScreenedBody =
  | { readonly kind: 'ok'; readonly bytes: Buffer; readonly found: FoundInBody }
  | { readonly kind: 'fault'; readonly fault: WireFault }

/** Bodies of one window are screened at once, longer ones and names with pauses in which everything else runs. */
export function screenBody(screens: BodyScreens, ask: BodyAsk, bytes: Buffer): ScreenedBody | Promise<ScreenedBody> {
  // The reader of the body refuses what is not UTF-8.
  const json = isUtf8(bytes) ? bytes.toString('utf8') : ''
  const work = screenJson(screens, ask, bytes, json)
  const isShort = json.length <= WINDOW_LENGTH && !(screens.names !== undefined && looksForNames(ask.terms))
  return isShort ? drained(work) : withPauses(work)
}

const looksForNames = ({ rules }: ScreeningTerms): boolean =>
  rules.some(({ screen, direction }) => screen === 'names' && direction === 'input')

function* screenJson(screens: BodyScreens, ask: BodyAsk, bytes: Buffer, json: string): ScreenWork<ScreenedBody> {
  const leaves = jsonLeaves(json)
  for (const member of leaves.numberLists)
    if (TOKEN_LISTS.has(member)) return { kind: 'fault', fault: tokenIdsFault(member) }
  const { strings, found } = beginScreening(screens, ask, () => sessionIn(json))
  if (ask.dialect === 'tensors' && leaves.numberLists.has('data')) strings.unscreened.add('tensor')
  yield undefined
  const rewritten = yield* strings.rewrite(json, leaves)
  yield undefined
  const unscreened = [...strings.unscreened]
  const fault = binaryFault(ask.terms, unscreened)
  if (fault !== undefined) return { kind: 'fault', fault }
  return {
    kind: 'ok',
    bytes: rewritten === json ? bytes : Buffer.from(rewritten),
    found: { ...found, unscreened },
  }
}

/** The screening of one request, before anything of it was looked at. */
export function beginScreening(
  { finderOf, names, isModel, salt }: BodyScreens,
  { dialect, tenantId, terms, session }: BodyAsk,
  sessionOf: () => string,
): { readonly text: TextScreen; readonly strings: JsonScreen; readonly found: FoundInBody } {
  const conversation = (): string => session ?? sessionOf()
  const placeholders = new Placeholders({ isReversible: terms.isReversible, secret: salt, tenantId, conversation })
  const text = new TextScreen({ terms, finder: finderOf(terms, 'input'), names, placeholders })
  const exceptions = SCREENING_EXCEPTIONS[dialect]
  const strings = new JsonScreen({ text, placeholders, exceptions, tenantId, isModel })
  const rewriteJson = (json: string): Promise<string> => withPauses(strings.rewrite(json))
  const { texts } = strings
  return {
    text,
    strings,
    found: { terms, found: text.found, unscreened: [], rewriter: text, placeholders, texts, rewriteJson },
  }
}

/** The conversation as the body names it; all that name none are one. */
function sessionIn(json: string): string {
  for (const member of ['prompt_cache_key', 'safety_identifier', 'user']) {
    const text = memberText(json, member)
    if (text !== undefined && text !== 'null' && text !== '""') return text
  }
  return ''
}

export const tokenIdsFault = (member: string): WireFault =>
  invalidRequest(
    `Invalid '${member}': your texts are screened, and token ids cannot be. Send the text itself.`,
    member,
    'unsupported-parameter',
  )

/**
 * The refusal of what never becomes a request, in which a screen found what the policy blocks: screen and category, never
 * the text. A request is refused by its story, which journals it.
 */
export function blockFault(found: readonly ScreenFinding[]): WireFault | undefined {
  const by = found.find(({ action }) => action === 'block')
  if (by === undefined) return undefined
  const message = `The request was blocked: ${by.screen} found ${by.category}. Take it out, and send the request again.`
  return invalidRequest(message, null, 'content-filter')
}

/** The refusal of what no screen can read, where the policy wants that. */
export function binaryFault({ binary }: ScreeningTerms, kinds: readonly string[]): WireFault | undefined {
  if (binary !== 'refuse' || kinds.length === 0) return undefined
  const message = `Your texts are screened, and what cannot be screened is refused here: ${kinds.join(', ')}. Send text only.`
  return invalidRequest(message, null, 'content-filter')
}
