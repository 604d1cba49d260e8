/**
 * Values of persons in many forms, from a seed, and sentences around them: formats that the rules were not written from.
 * Numbers are random; where a sum belongs to the kind, it is right.
 */
import { Rng } from '../../src/base/rng.ts'

export interface MadeEntity {
  readonly kind: string
  readonly value: string
}

/** A text and the values in it that must be gone. */
export interface MadeText {
  readonly text: string
  readonly entities: readonly MadeEntity[]
}

/** `#` is any digit, `N` one from 2 to 9; groups of a country as people of it write them, abroad and at home. */
const PHONE_FORMS: Readonly<Record<string, readonly string[]>> = {
  'phone, abroad': [
    '+351 9## ### ###',
    '+47 ### ## ###',
    '+47 ## ## ## ##',
    '+45 ## ## ## ##',
    '+354 ### ####',
    '+372 #### ####',
    '+371 ## ### ###',
    '+370 6## #####',
    '+36 30 ### ####',
    '+420 ### ### ###',
    '+421 9## ### ###',
    '+386 ## ### ###',
    '+385 91 ### ####',
    '+381 6# #######',
    '+40 7## ### ###',
    '+359 88 ### ####',
    '+30 69# ### ####',
    '+90 5## ### ## ##',
    '+972-5#-###-####',
    '+966 5# ### ####',
    '+971 5# ### ####',
    '+20 1# #### ####',
    '+212 6##-######',
    '+234 80# ### ####',
    '+254 7## ######',
    '+27 82 ### ####',
    '+91 9#### #####',
    '+92 3## #######',
    '+880 1###-######',
    '+94 7# ### ####',
    '+66 8# ### ####',
    '+84 9# ### ## ##',
    '+62 812-####-####',
    '+63 917 ### ####',
    '+60 12-### ####',
    '+65 9### ####',
    '+852 9### ####',
    '+886 9## ### ###',
    '+86 139 #### ####',
    '+82 10-####-####',
    '+81 90-####-####',
    '+61 4## ### ###',
    '+64 21 ### ####',
    '+52 1 55 #### ####',
    '+54 9 11 ####-####',
    '+55 11 9####-####',
    '+56 9 #### ####',
    '+57 3## #######',
    '+51 9## ### ###',
    '+598 9# ### ###',
    '+7 (9##) ###-##-##',
    '+380 67 ### ## ##',
    '+375 29 ###-##-##',
    '+998 9# ### ## ##',
    '+44 20 7### ####',
    '+44 (0)161 ### ####',
    '+353 1 ### ####',
    '+33 6 ## ## ## ##',
    '+34 6## ### ###',
    '+39 06 #### ####',
    '+39 3## #######',
    '+41 79 ### ## ##',
    '+43 664 #######',
    '+49 30 ########',
    '+49 (0) 170 #######',
    '+31 6 ########',
    '+32 4## ## ## ##',
    '+46 70-### ## ##',
    '+358 40 ### ####',
    '+48 ### ### ###',
    '+1 NNN NNN ####',
    '+1.NNN.NNN.####',
    '0044 20 7### ####',
    '00 49 89 #######',
    '0033 1 ## ## ## ##',
    '011 44 20 7### ####',
    '+1 (NNN) NNN-#### ext. ###',
  ],
  'phone, at home': [
    '(NNN) NNN-####',
    'NNN-NNN-####',
    'NNN.NNN.####',
    'NNN NNN ####',
    '1-NNN-NNN-####',
    '1 (NNN) NNN-####',
    'NNN-NNN-#### x###',
    '020 7### ####',
    '0161 ### ####',
    '01### ######',
    '07### ######',
    '07##########'.slice(0, 11),
    '06 ## ## ## ##',
    '01.##.##.##.##',
    '030 #######',
    '030/#######',
    '0170-#######',
    '0 89 / ## ## ## ##',
    '(089) ######',
    '06-########',
    '020 - ### ####',
    '02 ### ## ##',
    '04## ## ## ##',
    '079 ### ## ##',
    '0664 #######',
    '06 #### ####',
    '02-########',
    '3## #######',
    '08-### ## ##',
    '070-### ## ##',
    '040 ### ####',
    '0901 ### ###',
    '601 ### ###',
    '6## ### ###',
    '91 ### ## ##',
    '(0212) ### ## ##',
    '0532 ### ## ##',
    '05#-###-####',
    '8 (9##) ###-##-##',
    '090-####-####',
    '03-####-####',
    '010-####-####',
    '139########',
    '0912 ### ###',
    '(02) #### ####',
    '0412 ### ###',
    '021 ### ####',
    '(09) ### ####',
    '(11) 9####-####',
    '11 ####-####',
    '55 #### ####',
    '082 ### ####',
    '0803 ### ####',
    '9####-#####',
    '98########',
    '9### ####',
  ],
}

/** Lengths of account numbers behind the two check digits; `n` digits, `a` letters, `c` either. */
const IBAN_FORMS = `AD:8n12c AE:19n AL:8n16c AT:16n AZ:4a20c BA:16n BE:12n BG:4a6n8c BH:4a14c BR:23n1a1c BY:4c4n16c CH:5n12c
CR:18n CY:8n16c CZ:20n DE:18n DK:14n DO:4c20n EE:16n EG:25n ES:20n FI:14n FO:14n FR:10n11c2n GB:4a14n GE:2a16n GI:4a15c GL:14n
GR:7n16c GT:24c HR:17n HU:24n IE:4a14n IL:19n IQ:4a15n IS:22n IT:1a10n12c JO:4a4n18c KW:4a22c KZ:3n13c LB:4n20c LC:4a24c LI:5n12c
LT:16n LU:3n13c LV:4a13c LY:21n MC:10n11c2n MD:20c ME:18n MK:3n10c2n MR:23n MT:4a5n18c MU:4a19n3a NL:4a10n NO:11n PK:4a16c PL:24n
PS:4a21c PT:21n QA:4a21c RO:4a16c RS:18n SA:2n18c SC:4a20n3a SE:20n SI:15n SK:20n SM:1a10n12c ST:21n SV:4a20n TL:19n TN:20n
TR:6n16c UA:6n19c VA:18n VG:4a16n XK:16n`

const CARD_FORMS = `4:16 4:13 4:19 51:16 52:16 53:16 54:16 55:16 2221:16 2720:16 2500:16 34:15 37:15 6011:16 65:16 644:16 649:16
622126:16 622925:16 62:17 62:19 3528:16 3589:16 300:14 305:14 36:14 38:14 39:14 5018:12 5020:16 5038:13 5893:16 6304:16 6759:12
6761:18 6763:19 2200:16 2204:16 9792:16 60:16 508:16 81:16 82:16 5067:16 6362:16 4011:16 6062:16 5019:16 636:16`

export class EntityMaker {
  readonly #rng: Rng

  constructor(seed: number) {
    this.#rng = Rng.stream(seed, 'entities')
  }

  below(count: number): number {
    return this.#rng.nextUint32() % count
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!
  }

  #fill(form: string): string {
    return form.replace(/[#N]/g, (mark) => `${mark === '#' ? this.below(10) : 2 + this.below(8)}`)
  }

  #digits(count: number): string {
    return Array.from({ length: count }, () => this.below(10)).join('')
  }

  #letters(count: number): string {
    return Array.from({ length: count }, () => String.fromCharCode(65 + this.below(26))).join('')
  }

  phone(kind: keyof typeof PHONE_FORMS): string {
    return this.#fill(this.pick(PHONE_FORMS[kind]!))
  }

  card(): string {
    const [prefix, length] = this.pick(CARD_FORMS.split(/\s+/)).split(':') as [string, string]
    const body = prefix + this.#digits(Number(length) - prefix.length - 1)
    const digits = body + luhnDigit(body)
    const mark = this.pick(['', '', ' ', '-'])
    if (mark === '') return digits
    return digits.length === 15
      ? [digits.slice(0, 4), digits.slice(4, 10), digits.slice(10)].join(mark)
      : digits.replace(/(\d{4})(?=\d)/g, `$1${mark}`)
  }

  iban(): string {
    const [country, form] = this.pick(IBAN_FORMS.split(/\s+/)).split(':') as [string, string]
    let account = ''
    for (const [, count, kind] of form.matchAll(/(\d+)([nac])/g))
      for (let i = 0; i < Number(count); i++)
        account += kind === 'n' || (kind === 'c' && this.below(2) === 0) ? this.#digits(1) : this.#letters(1)
    const iban = country + String(98 - mod97(`${account}${country}00`)).padStart(2, '0') + account
    const style = this.below(4)
    if (style === 0) return iban.replace(/(.{4})(?=.)/g, '$1 ')
    return style === 1 ? iban.toLowerCase() : iban
  }

  ssn(): string {
    const area = String(1 + this.below(898)).padStart(3, '0')
    return `${area === '666' ? '665' : area}-${String(1 + this.below(99)).padStart(2, '0')}-${String(1 + this.below(9999)).padStart(4, '0')}`
  }

  ipv4(): string {
    return [1 + this.below(223), this.below(256), this.below(256), 1 + this.below(254)].join('.')
  }

  ipv6(): string {
    const groups = Array.from({ length: 8 }, () => this.below(65536).toString(16))
    const style = this.below(7)
    const from = 1 + this.below(4)
    const gap = 2 + this.below(3)
    const short = `${groups.slice(0, from).join(':')}::${groups.slice(from + gap).join(':')}`
    if (style === 0) return groups.join(':')
    if (style === 1) return groups.map((group) => group.padStart(4, '0')).join(':')
    if (style === 2) return groups.join(':').toUpperCase()
    if (style === 3) return `fe80::${groups.slice(4).join(':')}%${this.pick(['eth0', 'en1', '12'])}`
    if (style === 4) return `::ffff:${this.ipv4()}`
    if (style === 5) return `${groups.slice(0, 4).join(':')}::`
    return short
  }

  email(): string {
    const name = this.pick([
      'jane',
      'j.doe',
      'mary_ann',
      'x99',
      'Łukasz',
      'anne-marie',
      'info+test',
      "o'neil",
      '12345678',
      'ANA',
    ])
    const host = this.pick([
      'example.com',
      'mail.example.co.uk',
      'bücher.example',
      'a-b.io',
      'x.museum',
      'EXAMPLE.ORG',
      'sub.sub.example.travel',
      'xn--bcher-kva.example',
      'q.cn',
      '163.com',
    ])
    return `${name}${this.pick(['', `${this.below(100)}`])}@${host}`
  }

  make(kind: string): string {
    if (kind.startsWith('phone')) return this.phone(kind)
    return {
      card: () => this.card(),
      iban: () => this.iban(),
      ssn: () => this.ssn(),
      ipv4: () => this.ipv4(),
      ipv6: () => this.ipv6(),
      email: () => this.email(),
    }[kind]!()
  }

  /** A sentence with one or two values. */
  text(): MadeText {
    const kind = this.pick(MADE_KINDS)
    const value = this.make(kind)
    const frame = this.pick(
      FRAMES[kind.startsWith('phone') ? 'phone' : kind.startsWith('ip') ? 'ip' : kind] ?? FRAMES['any']!,
    )
    return { text: frame.replace('%', () => value), entities: [{ kind, value }] }
  }
}

export const MADE_KINDS = ['email', 'phone, abroad', 'phone, at home', 'card', 'iban', 'ssn', 'ipv4', 'ipv6']

const luhnDigit = (body: string): number => {
  let sum = 0
  for (let i = body.length - 1, isDouble = true; i >= 0; i--, isDouble = !isDouble) {
    const digit = Number(body[i]) * (isDouble ? 2 : 1)
    sum += digit > 9 ? digit - 9 : digit
  }
  return (10 - (sum % 10)) % 10
}

const mod97 = (text: string): number => {
  let rest = 0
  for (const char of text) {
    const value = Number.parseInt(char, 36)
    rest = (rest * (value > 9 ? 100 : 10) + value) % 97
  }
  return rest
}

const FRAMES: Readonly<Record<string, readonly string[]>> = {
  phone: [
    'My number is %, call any time.',
    'You can reach me at % after six.',
    'Tel.: %',
    'Phone: %\nFax: -',
    'Please ring % or write.',
    'Text me: %',
    '{"name":"Ana","phone":"%"}',
    '| Ana | % | Lisbon |',
    'contact=%;',
    'Ana Pérez, %, Madrid',
    'mobile % (work)',
    'Is % still your number?',
    'I tried %, nobody answered.',
    'WhatsApp: %.',
    'Dial % and ask for Tom',
    '- home: %\n- office: none',
  ],
  card: [
    'Card %, 12/27.',
    'charge % please',
    'cc=%',
    '{"card":"%"}',
    'My Visa is % and it was declined',
    'PAN:%',
    'pay with %!',
  ],
  iban: ['IBAN: %', 'transfer to % by Friday', '{"iban":"%"}', 'My account is %.', '(%)', 'Konto %, danke'],
  ssn: ['SSN %', 'My social is %.', '{"ssn":"%"}', 'social security number: %', '%, born 1980'],
  ip: [
    'from % to us',
    'client_ip=%',
    'Blocked: %.',
    '{"ip":"%"}',
    '% - - [10/Oct/2000:13:55:36] "GET /"',
    'ssh root@%',
    'host % is down',
  ],
  email: ['Write to %.', '<%>', 'mailto:%', '{"email":"%"}', 'cc %, please', 'Is it %?', 'user=% role=admin'],
}
