import { normalise } from '../normalise.ts'
import { isDigit, isWordUnit } from './characters.ts'

/** What the words before a number say it is. */
export type NumberContext = 'phone' | 'person-number' | 'tax-number' | 'card' | 'version' | 'other' | 'none'

/** Units before a number that are read for context. Streams keep as much of what they have released. */
const CONTEXT_UNITS_MAX = 48

const WORDS: Readonly<Record<Exclude<NumberContext, 'none'>, string>> = {
  phone: `phone phones telephone telephones tel tlf telefon telefono telefoon téléphone teléfono telefone telefonnummer
    telefonnr rufnummer mobile mobil móvil movil cell cellphone handy celular portable gsm fax call calls called calling
    dial dialed dialing ring rang text texted sms whatsapp telegram signal viber contact reach hotline helpline landline
    pager voicemail answering callback messages message registered ligue llame llamar anrufen appeler appelez chiama
    téléphoner nummer numéro teléf teléfonos ph hp телефон тел моб факс звоните 电话 手机 電話 携帯 전화`,
  'person-number': `ssn ssns social itin pesel bsn burgerservicenummer nino cpf dni nie nif personnummer cpr hetu
    aadhaar aadhar uidai sin nric passport codice fiscale rodné nir insee steuer steueridentifikationsnummer steuerid
    identification identity curp rrn medicare nhs tfn fødselsnummer henkilötunnus`,
  'tax-number': 'ein tin taxpayer tax vat abn cnpj',
  card: 'card cards visa mastercard amex maestro debit credit cc pan pay paid payment charge charged billed',
  version: `version versions v ver release released build section chapter clause paragraph assembly rev revision
    firmware driver oid rfc`,
  other: `order orders invoice ticket tickets case license licence serial isbn issn sku ref reference tracking part
    model zip postal postcode account acct policy claim batch lot item product barcode ean upc doi pmid id ids uuid hash
    commit line lines page pages pid port row rows size bytes population total amount price cost usd eur width height
    offset timestamp epoch address customer transaction confirmation booking docket patent arxiv`,
}

const contextOf = new Map<string, NumberContext>()
for (const [context, words] of Object.entries(WORDS))
  for (const word of words.split(/\s+/)) contextOf.set(normalise(word).text, context as NumberContext)

/**
 * The nearest word before a number that says what the number is. A word over two lines away says nothing about it;
 * words such as `office` count only with a colon behind them.
 */
export const contextBefore = (text: string, at: number): NumberContext => {
  const from = Math.max(0, at - CONTEXT_UNITS_MAX)
  let end = at
  let lines = 0
  while (end > from) {
    while (end > from && !isWordUnit(text.charCodeAt(end - 1))) {
      if (text.charCodeAt(end - 1) === 0x0a && ++lines > 2) return 'none'
      end--
    }
    let start = end
    let isNumber = true
    while (start > from) {
      const unit = text.charCodeAt(start - 1)
      if (!isDigit(unit)) {
        if (!isWordUnit(unit)) break
        isNumber = false
      }
      start--
    }
    // The first word of the window may be cut: only whole words count.
    if (start === from && from > 0) break
    // Numbers say nothing, and tables are full of them.
    if (isNumber) {
      end = start
      continue
    }
    const word = text.slice(start, end).toLowerCase()
    const context = contextOf.get(word) ?? contextOfParts(word)
    if (context !== undefined) return context
    if (word === 'number' && isSomebodys(text, start)) return 'phone'
    if (PLACES.has(word) && text.charCodeAt(end) === 0x3a) return 'phone'
    end = start
  }
  return 'none'
}

/** `my number`, `your number`: of all numbers, people mean that of their telephone. */
const isSomebodys = (text: string, at: number): boolean =>
  /\b(my|your|his|her|their|our|whose|new|same) $/i.test(text.slice(Math.max(0, at - 7), at))

/** Names in code are several words: `phone_number`, `mobilePhone`, `order_id`. */
const contextOfParts = (word: string): NumberContext | undefined => {
  if (word.includes('_')) {
    for (const part of word.split('_').reverse()) {
      const context = contextOf.get(part)
      if (context !== undefined) return context
    }
  }
  return word.endsWith('phone') ? 'phone' : undefined
}

const PLACES = new Set('office desk home work direct main switchboard reception t p m f c h w o number'.split(' '))
const PLACES_BEHIND = new Set('office fax mobile cell home work desk phone landline tel telephone direct'.split(' '))

/** Longest word of `PLACES_BEHIND`. */
export const PLACE_BEHIND_UNITS_MAX = 9
export const isPlaceBehind = (word: string): boolean => PLACES_BEHIND.has(word)
export const mayBecomePlace = (word: string): boolean => {
  for (const place of PLACES_BEHIND) if (place.startsWith(word)) return true
  return false
}
