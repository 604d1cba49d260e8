/**
 * What do keys of known services look like? Prefixes, alphabets and lengths, as the services document them and as
 * gitleaks (MIT) collects them. Written as tables of facts: `alphabet·length: prefixes` and `words: alphabet·lengths`.
 *
 * Alphabets: `9` digits, `h` hex, `a` letters, `w` letters and digits, `u` the same in capitals, `W` also `_` and `-`,
 * `d` also `.` and `=`, `b` also `+ / =`.
 */
export type SecretAlphabet = '9' | 'h' | 'a' | 'w' | 'u' | 'W' | 'd' | 'b'

/** A key that its first characters give away. At least `unitsMin` units of the alphabet follow them. */
export interface PrefixRule {
  readonly prefix: string
  readonly alphabet: SecretAlphabet
  readonly unitsMin: number
  /** The key has exactly this many units behind its prefix: short prefixes are words, too. */
  readonly isExact: boolean
  /** What the units behind the prefix must look like besides. */
  readonly shape?: RegExp
  readonly category: string
}

const PREFIXES = `
a·34: hf_ api_org_
h·32: dapi shpat_ shpca_ shppa_ shpss_
h·40: glptt- pul- shippo_live_ shippo_test_ squ_ sqp_ sqa_
h·48: rubygems_
h·64: doo_v1_ dop_v1_ dor_v1_ sntryu_ s-s4t2ud- s-s4t2af-
h=32: SK
w·10: sk_test_ sk_live_ sk_prod_ rk_test_ rk_live_ rk_prod_
w·16: sm_aat_ sm_pat_ sm_sat_
w·19: NRJS- NRII- NRAK-
w·20: LTAI
w=24: s.
w·32: p8e- ico- CLOJARS_ whsec_
w·36: ghu_ ghs_ gho_ ghp_ ghr_ npm_ pnu_ r8_
w·38: 4b1d
w·40: lin_api_ gsk_
w·43: dp.pt.
w·46: ntn_
w·48: pplx-
w·54: EZAK EZTK
w·59: cmVmd
w·69: AKCp
w·70: eyJrIjoi rdme_
w·100: EAAM EAAC
u=16: AKIA ASIA ABIA ACCA
u=17: A3T
u·26: API-
u·58: AGE-SECRET-KEY-1
W·12: FLWSECK_TEST- FLWPUBK_TEST-
W·20: sk-ant- sk-proj- sk-svcacct- sk-admin- glcbt- gldt- glffct- glft- glimt- glagent- gloas- glpat- glrt- glsoat- GR1348941
W·20: xoxb- xoxp- xoxe- xoxa- xoxr- xoxo- xoxs- xapp- dckr_pat_ tskey- GOCSPX-
W·22: sq0atp- EAAA
W·35: AIza A3- AQVN
W·40: github_pat_ glsa_ sgp_ sk-or-v1-
W·43: fo1_ duffel_test_ duffel_live_ sha256~
W·48: tk-us- PMAK-
W·50: pypi-AgEIcHlwaS5vcmc
W·58: HRKU-AA
W·64: fio-u- dnkey-
W·81: xkeysib-
W·90: hvs. hvb.
W·160: v1.0-
d·30: ya29.
d·32: pscale_tkn_ pscale_oauth_ pscale_pw_
d·59: tfp_
d·66: SG.
d·89: dt0c01.
d·180: ATATT3
b·10: bedrock-api-key-
b·32: glc_
b·60: sntrys_eyJ
b·100: fm1a_ fm1r_ fm2_ ABSK ops_eyJ`

const SHAPED: readonly PrefixRule[] = [
  { prefix: 'sk-', alphabet: 'w', unitsMin: 40, isExact: false, category: 'api-key' },
  { prefix: 'pat', alphabet: 'd', unitsMin: 70, isExact: false, shape: /^\w{14}\.[0-9a-f]{50}/, category: 'api-key' },
  ...['pat.', 'sat.'].map((prefix) => ({
    prefix,
    alphabet: 'd' as const,
    unitsMin: 60,
    isExact: false,
    shape: /^[\w-]{22}\.\w{24}\.\w{20}/,
    category: 'api-key',
  })),
  ...['sc_', 'ext_', 'scauth_', 'authress_'].map((prefix) => ({
    prefix,
    alphabet: 'd' as const,
    unitsMin: 50,
    isExact: false,
    shape: /^\w{5,30}\.\w{4,6}\.acc[_-]/,
    category: 'api-key',
  })),
  { prefix: 'eyJ', alphabet: 'd', unitsMin: 34, isExact: false, shape: /\.ey/, category: 'jwt' },
  { prefix: 'ZXlK', alphabet: 'b', unitsMin: 60, isExact: false, category: 'jwt' },
  {
    prefix: 'hooks.slack.com',
    alphabet: 'b',
    unitsMin: 40,
    isExact: false,
    shape: /^\/[a-z]{8,9}\//,
    category: 'webhook',
  },
  {
    prefix: 'webhook.office.com',
    alphabet: 'b',
    unitsMin: 40,
    isExact: false,
    shape: /^\/webhook/,
    category: 'webhook',
  },
]

const parsePrefixes = (): PrefixRule[] =>
  PREFIXES.trim()
    .split('\n')
    .flatMap((line) => {
      const [head, prefixes] = line.split(': ') as [string, string]
      return prefixes.split(' ').map((prefix) => ({
        prefix,
        alphabet: head[0] as SecretAlphabet,
        unitsMin: Number(head.slice(2)),
        isExact: head[1] === '=',
        category: 'api-key',
      }))
    })

export const PREFIX_RULES: readonly PrefixRule[] = [...parsePrefixes(), ...SHAPED]

/** A key that only the name before it gives away: `datadog_key = …`. */
export interface NamedRule {
  readonly alphabet: SecretAlphabet | 'uuid'
  readonly unitsMin: number
  readonly unitsMax: number
}

const NAMED = `
adafruit nytimes fastly: W32
adobe linear privateai private_ai private-ai: h32
airtable: w17
algolia bittrex codecov droneci flickr: w32
alibaba: w30
asana: 9·16 w32
atlassian confluence jira: w24
aws amazon: b40
beamer: W46
bitbucket: w32 W64
meraki: h40
cloudflare: W40 h37
cohere co_api_key: w40
coinbase: W64
confluent: w16 w64
contentful: W43
datadog: w40
discord: h64 9·18 W32
dropbox: w15 W64 d138
etsy: w24
facebook: h32
finicity: h32 w20
finnhub: w20
freshbooks: w64
gitter launchdarkly sonar: W40
gitlab_session: w32
gocardless: W45
heroku hubspot squarespace snyk: uuid
intercom: W60
jfrog artifactor bintray xray: w64 w73
kraken: b80-90
kucoin: h24 uuid
linkedin linked_in linked-in: w14 w16
lob: W36-45
looker: w20 w24
mailchimp: W37
mailgun: W36-50
mapbox: d80-90
mattermost: w26
maxmind: W40
messagebird message-bird message_bird: w25 uuid
netlify: W40-46
newrelic new-relic new_relic: w64
okta: W42
plaid: w24 w30 W50-60
rapidapi: W50
sendbird: uuid h40
sentry: h64
sourcegraph: h40
sumo: w14 w64
travis: w22
twitch: w30
twitter: w25 w45 w50 W36-66 w80-122
typeform: d63
yandex: d40 d90-400
zendesk: w40`

/** Names of keys in general, of which the value must look random. */
const GENERIC = 'access api auth key credential creds secret token'
/** Names of words that somebody made up, of which the value is whatever stands there. */
const PASSWORDS = 'password passwd passphrase pwd passcode'

export interface SecretName {
  readonly word: string
  readonly kind: 'named' | 'generic' | 'password'
  readonly rules: readonly NamedRule[]
}

const parseRule = (text: string): NamedRule => {
  if (text === 'uuid') return { alphabet: 'uuid', unitsMin: 36, unitsMax: 36 }
  const [min, max] = text.slice(1).replace('·', '').split('-')
  return { alphabet: text[0] as SecretAlphabet, unitsMin: Number(min), unitsMax: Number(max ?? min) }
}

export const SECRET_NAMES: readonly SecretName[] = [
  ...NAMED.trim()
    .split('\n')
    .flatMap((line) => {
      const [words, rules] = line.split(': ') as [string, string]
      const parsed = rules.split(' ').map(parseRule)
      return words.split(' ').map((word) => ({ word, kind: 'named' as const, rules: parsed }))
    }),
  ...GENERIC.split(' ').map((word) => ({ word, kind: 'generic' as const, rules: [] })),
  ...PASSWORDS.split(' ').map((word) => ({ word, kind: 'password' as const, rules: [] })),
]
