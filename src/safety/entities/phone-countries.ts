/**
 * How long is a telephone number of this country, without its country code? From the numbering plans that the ITU
 * publishes (E.164 and its national annexes), as `code:digits` or `code:min-max`.
 */
const PLANS = `
1:10 7:10 20:8-10 27:9 30:10 31:9 32:8-9 33:9 34:9 36:8-9 39:6-11 40:9 41:9 43:7-13 44:7-10 45:8 46:7-10 47:5-8 48:9
49:6-13 51:8-9 52:10 53:6-8 54:10-11 55:10-11 56:8-9 57:8-10 58:10 60:8-10 61:8-10 62:7-12 63:8-10 64:8-10 65:8 66:8-9
81:9-10 82:8-11 84:7-10 86:10-11 90:10 91:10 92:9-10 93:9 94:9 95:7-10 98:10 211:9 212:9 213:8-9 216:8 218:8-9 220:7
221:9 222:8 223:8 224:8-9 225:8-10 226:8 227:8 228:8 229:8-10 230:7-8 231:7-9 232:8 233:9 234:7-10 235:8 236:8 237:8-9
238:7 239:7 240:9 241:7-8 242:9 243:7-9 244:9 245:7-9 246:7 247:4-6 248:7 249:9 250:8-9 251:9 252:7-9 253:8 254:9 255:9
256:9 257:8 258:8-9 260:9 261:9-10 262:9 263:5-10 264:7-9 265:7-9 266:8 267:7-8 268:8 269:7 290:4-5 291:7 297:7 298:6
299:6 350:8 351:9 352:5-11 353:7-10 354:7-9 355:8-9 356:8 357:8 358:5-12 359:7-9 370:8 371:8 372:7-8 373:8 374:8
375:9-10 376:6-9 377:8-9 378:6-10 379:6-11 380:9 381:8-9 382:8 383:8-9 385:8-9 386:8 387:8 389:8 420:9 421:9 423:7-9
500:5 501:7 502:8 503:8 504:8 505:8 506:8 507:7-8 508:6-9 509:8 590:9 591:8 592:7 593:8-9 594:9 595:9 596:9 597:6-7
598:7-8 599:7-8 670:7-8 672:6 673:7 674:7 675:7-8 676:5-7 677:5-7 678:5-7 679:7 680:7 681:6 682:5 683:4-7 685:5-7
686:5-8 687:6 688:5-7 689:6-8 690:4-7 691:7 692:7 800:8 808:8 850:8-10 852:8 853:8 855:8-9 856:8-10 870:9 880:8-10
881:8-12 882:7-12 883:7-12 886:8-9 960:7 961:7-8 962:8-9 963:8-9 964:8-10 965:7-8 966:8-9 967:7-9 968:7-8 970:8-9
971:8-9 972:8-9 973:8 974:7-8 975:7-8 976:8 977:8-10 992:9 993:8 994:9 995:9 996:9 998:9`

interface NumberPlan {
  readonly digitsMin: number
  readonly digitsMax: number
}

const plans = new Map<string, NumberPlan>(
  PLANS.trim()
    .split(/\s+/)
    .map((entry) => {
      const [code, range] = entry.split(':') as [string, string]
      const [min, max] = range.split('-')
      return [code, { digitsMin: Number(min), digitsMax: Number(max ?? min) }]
    }),
)

/**
 * Whether digits are a country code and a number of a length that this country has. One digit more or less still counts
 * with `isRough`: people forget and add digits, and a number is no less theirs for it.
 */
export const isInternationalNumber = (digits: string, isRough: boolean): boolean => {
  // The trunk prefix 0, which some write between code and number, is not part of it.
  for (let length = 1; length <= 3; length++) {
    const plan = plans.get(digits.slice(0, length))
    if (plan === undefined) continue
    const count = digits.length - length - (digits[length] === '0' && length < digits.length - 6 ? 1 : 0)
    const slack = isRough ? 1 : 0
    // Fewer than seven digits in all are a sum or a score.
    return digits.length >= 7 && count >= plan.digitsMin - slack && count <= plan.digitsMax + slack
  }
  return false
}

export const phoneCountryCodes = (): ReadonlyMap<string, NumberPlan> => plans
