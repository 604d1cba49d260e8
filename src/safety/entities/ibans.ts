import { DIGIT, isDigit, isWordUnit, kindOf, LETTER, NONE, OPEN } from './characters.ts'
import { passesMod97 } from './checksums.ts'

/** Characters of an IBAN by country (SWIFT's registry), and of countries that use the form without being registered. */
const LENGTHS = new Map(
  `AD24 AE23 AL28 AO25 AT20 AZ28 BA20 BE16 BF28 BG22 BH22 BI27 BJ28 BR29 BY28 CF27 CG27 CH21 CI28 CM27 CR22 CV25 CY28
  CZ24 DE22 DJ27 DK18 DO28 DZ26 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GA27 GB22 GE22 GI23 GL18 GQ27 GR27 GT28 GW25 HN28
  HR21 HU28 IE22 IL23 IQ23 IR26 IS26 IT27 JO30 KM27 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MA28 MC27 MD24 ME22
  MG27 MK19 ML28 MN20 MR27 MT31 MU30 MZ25 NE28 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31
  SD18 SE24 SI19 SK24 SM27 SN28 SO23 ST25 SV28 TD27 TG28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30`
    .split(/\s+/)
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))]),
)

export const ibanLengths = (): ReadonlyMap<string, number> => LENGTHS

/** An IBAN in one piece, or in groups of four with single spaces or dashes, in either case. */
export const ibanEnd = (text: string, at: number, isWhole: boolean): number => {
  if (!isDigit(text.charCodeAt(at + 2)) || !isDigit(text.charCodeAt(at + 3)) || isDigit(text.charCodeAt(at)))
    return NONE
  const length = LENGTHS.get(text.slice(at, at + 2).toUpperCase())
  if (length === undefined) return NONE
  let p = at
  let iban = ''
  let mark = -1
  while (iban.length < length) {
    const unit = text.charCodeAt(p)
    if (p === text.length) return isWhole ? NONE : OPEN
    if (unit < 128 && (kindOf(unit) & (DIGIT | LETTER)) !== 0) {
      iban += text[p++]
      continue
    }
    // Groups are of four, and the mark between them is always the same.
    const isMark = unit === 0x20 || unit === 0x2d
    if (!isMark || iban.length % 4 !== 0 || iban.length === 0 || (mark >= 0 && mark !== unit)) return NONE
    if (mark < 0 && iban.length !== 4) return NONE
    mark = unit
    p++
  }
  if (p === text.length && !isWhole) return OPEN
  return isWordUnit(text.charCodeAt(p)) || !passesMod97(iban) ? NONE : p
}
