/** A few lines of everything that people send. None of it was used for fitting the estimate's weights. */
export const TEXTS: Readonly<Record<string, string>> = {
  prose:
    'The harbour town woke slowly. Gulls argued over the fish crates while the ferry, late as always, sounded its horn ' +
    'twice and turned into the wind. Nobody on the quay looked up; they had seen it do so every morning for thirty years.',
  code:
    'export function clampRate(rate: number, { min, max }: Bounds): number {\n  if (Number.isNaN(rate)) return min\n' +
    '  // Keep it inside, whatever the caller thinks.\n  return Math.min(max, Math.max(min, rate))\n}\n\nconst x = items.map((i) => i.id)\n',
  json: '{"id":"ord_8812","items":[{"sku":"A-100","qty":2,"price":19.99},{"sku":"B-7","qty":1,"price":5}],"paid":true}',
  numbers: '2026-01-14 12:30:55, 1048576, 3.14159, 42, 99.5%, 10.0.0.1, +49 30 1234567, 0x7fff, 1,000,000',
  german:
    'Die Stadtverwaltung hat gestern beschlossen, die Straßenbahnlinie bis zum neuen Krankenhaus zu verlängern; die ' +
    'Bauarbeiten beginnen voraussichtlich im Frühjahr und dauern etwa zwei Jahre.',
  russian: 'Вчера вечером в городе прошёл сильный дождь, и несколько улиц оказались полностью затоплены водой.',
  chinese: '昨天晚上,城里下了一场大雨,好几条街道都被水淹没了。消防队员整夜都在帮助居民撤离。',
  japanese: '昨日の夜、町に大雨が降り、いくつかの通りが水浸しになりました。消防隊は一晩中、住民の避難を手伝いました。',
  korean: '어젯밤 도시에 큰 비가 내려 여러 거리가 물에 잠겼습니다. 소방대원들은 밤새 주민들의 대피를 도왔습니다.',
  arabic: 'هطلت أمطار غزيرة على المدينة مساء أمس وغمرت المياه عدة شوارع بالكامل.',
  emoji: 'Great work team! 🎉🎉 The launch went really well 🚀 and the customers love it ❤️ see you tomorrow 👋😄',
}
