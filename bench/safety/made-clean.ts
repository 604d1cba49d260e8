/** Texts without a value of anybody, full of numbers and marks all the same: what rules alter by mistake. */
import type { EntityMaker } from './made-entities.ts'

/** `#` digit, `H` hex digit, `W` capital or digit, `M` month, `D` day, `T` hour, `S` minute or second, `Y` year. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  log: [
    'Y-M-D T:S:S,### INFO [worker-#] request 0x HHHHHHHH took ###.## ms (id=########)',
    'Y-M-D app[####]: GET /v1/items/######## 200 ####b #.###s',
    '[Y-M-DTT:S:S.###Z] ERROR code=##### trace=HHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH span=HHHHHHHHHHHHHHHH',
    'kernel: [#####.######] usb 1-#: new high-speed USB device number # using xhci_hcd',
    '##########.### ######.### ### commit HHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH',
    'pid=##### tid=##### rss=######## vsz=########## cpu=##.#% epoch=17########',
  ],
  code: [
    'const TIMEOUT_MS = ##_### // was ######',
    'if (x > ### && y < ####) return arr[##] ?? ##.##',
    'std::vector<int> v{##, ##, ###}; auto x = ns::f(##);',
    'color: #HHHHHH; margin: ##px ##px; z-index: ####',
    'UPDATE t SET a = ### WHERE id IN (####, #####, ######)',
    'uint32_t k = 0xHHHHHHHH; double d = #.######e-##;',
    'pip install numpy==1.##.# torch==2.#.#+cu1## pandas>=1.#.#',
    '"version": "#.##.###", "integrity": "sha512-########"',
    'docker run -p 80##:80 img:v#.#.#-rc.# --memory=####m',
    'git checkout HHHHHHHHH -- src/a##.ts',
    'matrix[##][##] = row_######## * 3.14159265 + 2.71828',
    'import { a#, b# } from "./mod-##.js" // eslint-disable-line',
  ],
  'ids and hashes': [
    'UUID HHHHHHHH-HHHH-4HHH-aHHH-HHHHHHHHHHHH is taken',
    'sha256:HHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH',
    'order number ########, invoice INV-Y-######',
    'Order #####-#####-## shipped',
    'tracking 1ZWWWWWW##########',
    'Ticket ABC-##### and PR #####',
    'SKU WWW-####-WW, lot ######',
    'ISBN 978-#-##-######-#',
    'ISBN 0########X',
    'EAN 40###########',
    'DOI 10.####/j.abc.Y.##.###',
    'arXiv:20M.#####',
    'case no. #:##-cv-#####',
    'Flight LH#### seat ##A',
    'VIN WBAWWWWWWWW######',
    'MAC HH:HH:HH:HH:HH:HH',
    'part no. ###-######-##',
    'ref ##########',
    'customer id ########',
    'transaction id ##########',
    'barcode ############',
    'model no. XJ-######',
  ],
  'dates and times': [
    'on D.M.Y at T:S',
    'M/D/Y T:S:S',
    'from Y-M-D to Y-M-D',
    'D-M-Y, D-M-Y and D-M-Y',
    'Y/M/D T:S',
    'T:S:S.###',
    'week ##, Y-Y',
    'Y–Y, pp. ###–###',
    'born D.M.19##, died D.M.Y',
    '20M D T',
    'Q# Y: ##%, Y+1: ##%',
    'timestamp 17########',
    'timestamp 17###########',
  ],
  'sums and measures': [
    '$#,###,###.## and €###.###,##',
    '#### × #### px',
    '##.###### N, ###.###### W',
    '-##.######, ###.######',
    '(##.####, -##.####)',
    'about ### ### ### people',
    '# ### ### km²',
    '##,###,###',
    '##### 12345 steps',
    '##.##% of ####',
    '###-### kg',
    'IRR ######### / ###',
    '£##m, ¥########',
    'score ##-##, ###-###',
    '#.#e## J',
    '1:###,###',
    '### ## ## ##',
    'pi 3.14159265358979',
    '##°##\'##" N',
  ],
  versions: [
    'version #.##.#.####',
    'v#.#.#.#',
    'Chrome/###.0.####.##',
    'build ##.#.#####.####',
    'Windows 10.0.19###.####',
    'kernel 5.##.0-###-generic',
    'release #.#.#.#',
    'section #.#.#.#',
    'firmware #.#.##.###',
    'node v##.##.#',
    'OpenSSL 1.1.1# 11 Sep 20##',
    'RFC ####, section #.#.#',
  ],
  tables: [
    '| id | a | b |\n|----|---|---|\n| ##### | ### | ## |\n| ##### | ### | ## |',
    '#### #### ###\n#### #### ###\n#### #### ###',
    'a,b,c\n##,###,####\n##,###,####',
    '1. ### 2. ### 3. ###',
    '{"a":####,"b":[##,##,###],"c":"##########"}',
    '---\n-----------\n===',
    '<td>####</td><td>########</td>',
    'x\t##.#\t###\t####',
    '## ## ## ## ## ##',
    '10 20 30 40 50 60 70 80 90',
    '[##, ##, ##, ###, ####]',
  ],
  chat: [
    'lol call me in 10 min, like 12 34 56 :)',
    'room ### at T:S, bring ## chairs',
    'I have ### followers @ home',
    'my 2##th try!!!',
    'line ####, page ###',
    'it is 5-0 or 10-2',
    'see you @ T:S',
    'zip ##### Springfield',
    '12345 Main St Apt ###',
    '### ##th Street, NY 1####',
    '7-eleven, 24/7, 9-5',
    'what is ##### + #####?',
    'multiply #### by ####',
    'Calculate ###.## / ##.#',
    'the 1990s and 2000s',
    'F1 Y, G20, 4x4, A380',
    'PO Box ####',
  ],
}

export const CLEAN_KINDS = Object.keys(FORMS)

export const makeClean = (maker: EntityMaker, kind: string): string => {
  const two = (value: number): string => String(value).padStart(2, '0')
  return maker.pick(FORMS[kind]!).replace(/[#HWMDTSY](?![a-z])/g, (mark) => {
    if (mark === '#') return `${maker.below(10)}`
    if (mark === 'H') return maker.below(16).toString(16)
    if (mark === 'W') return 'ABCDEFGHJKLMNPRSTUVWXYZ0123456789'[maker.below(33)]!
    if (mark === 'M') return two(1 + maker.below(12))
    if (mark === 'D') return two(1 + maker.below(28))
    if (mark === 'T') return two(maker.below(24))
    if (mark === 'S') return two(maker.below(60))
    return `${1950 + maker.below(80)}`
  })
}
