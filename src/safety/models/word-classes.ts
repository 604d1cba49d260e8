import { hashWord } from './fold-text.ts'

/**
 * Words that mean the same to a screen: one class each, in four languages where attacks are written in them. The models
 * learn from runs of classes, so that "disregard the directions you got before" is near "ignore all previous
 * instructions". The order of the classes is part of the trained weights: add at the end, and train again.
 */
const PHRASE_CLASSES: readonly string[] = [
  // Setting aside.
  `ignore ignores ignoring disregard disregarding forget forgets override overrides overwrite bypass skip neglect overlook
   discard drop dismiss cancel erase nullify suspend abandon circumvent unlearn ignoriere ignorier ignorieren vergiss
   vergesst vergessen missachte ignora ignorar olvida olvide olvidar ignorez oublie oubliez oublier dimentica ignori
   esqueça esquece`,
  // What came before.
  `previous previously prior above preceding earlier before foregoing former existing beforehand aforementioned
   vorherige vorherigen vorheriges bisherige bisherigen obige obigen vorangehenden vorangegangenen davor zuvor vorher
   anterior anteriores previas previo antes précédentes précédents précédente dessus precedenti precedente`,
  // What was asked of a model.
  `instruction instructions rule rules direction directions directive directives guideline guidelines guidance order
   orders command commands constraint constraints policy policies programming protocol protocols anweisung anweisungen
   regeln befehle vorgaben aufträge instrucción instrucciones reglas consignes règles istruzioni regole instruções
   instrutions instrucions`,
  // A prompt.
  'prompt prompts preprompt preamble promptinstruktionen prompttext systemprompt eingabeaufforderung',
  // Text that a model has read.
  `text texts word words sentence sentences paragraph paragraphs line lines message messages content contents document
   conversation input context dialogue chat history session texte inhalt kontext texto contexto texte contexte`,
  // Showing.
  `print prints show shows repeat repeats reveal reveals output display displays disclose expose leak echo recite dump
   divulge unveil parrot regurgitate reproduce zeige zeig wiederhole nenne verrate gib muestra repite revela affiche
   montre répète révèle mostra ripeti rivela mostre repita copy quote list`,
  // Saying.
  `say says write tell respond reply answer state type speak give provide return share send sag sage schreibe schreib
   antworte sagen di escribe responde dis écris réponds scrivi rispondi diga escreva`,
  // Secrets.
  `secret secrets password passwords passcode passphrase passord key keys code codes pin credential credentials
   confidential token tokens flag passwort kennwort geheim geheimnis contraseña clave secreto`,
  // A system's own.
  `system hidden internal initial original underlying starting opening beginning default built configured setup
   developer ursprünglichen ursprüngliche anfang inicial originales initiales`,
  // All of it.
  'all any every everything anything entire whole complete full alle alles allen gesamten todo todas todos tout toutes tutto tutte tudo',
  'your you yourself yours youre du dein deine deinen deiner dir dich ihre ihren sie tu tus tú vous vos votre seu suas',
  'me my i im we us our mir mich mein meine ich mi yo moi mon je',
  // Turning to something else.
  `instead only just now henceforth new different another stattdessen nur jetzt nun neue neuen neuer ab en lugar solo
   ahora nueva nuevas plutôt maintenant nouvelle seulement rather`,
  `act acting pretend pretending roleplay roleplaying role imagine simulate simulating become becomes character persona
   behave impersonate portray embody play playing emulate personality stell fungieren rolle finge actúa imagina`,
  `unrestricted unfiltered uncensored jailbreak jailbroken unethical immoral illegal amoral limitless restrictions
   restriction filter filters filtered censorship censored limitations limits boundaries ethics ethical moral morals
   morality disclaimers disclaimer warnings inappropriate offensive harmful explicit nsfw dangerous unlawful taboo
   forbidden prohibited safety`,
  'never not dont don without no cannot cant refuse refuses refusing refusal unable nicht kein keine nunca sin jamais sans',
  'chatgpt gpt openai ai assistant chatbot bot model llm claude gemini bard llama mistral copilot ki ia dan modelo modèle',
  // The answer, as something to be changed.
  'response responses reply replies answers output outputs antwort respuesta réponse result results summary',
  `add include insert append integrate incorporate embed augment modify enhance mention attach merge introduce inject
   prepend weave place put sprinkle supplement enrich adjust alter conclude end begin start finish`,
  `snippet snippets block section excerpt function implementation solution algorithm codebase script program fragment
   segment piece import module`,
  `encode encoded encoding base64 rot13 backwards backward reverse reversed cipher hex hexadecimal morse binary emoji
   emojis anagram anagrams translate translation translated scramble jumble substitute substitution uppercase lowercase
   capital misspell typos rhyme spaces decode`,
  'mode enabled enable activate activated sudo admin administrator root debug maintenance god unlock unlocked privileged',
  'must always should shall obligated required mandatory immer muss musst siempre debes toujours dois',
  'please kindly bitte porfavor favor',
  'stop halt wait attention stopp achtung urgent important notice note alert warning',
  'follow obey comply adhere execute perform proceed focus concentrate consider ensure remember befolge konzentriere',
  'what whats which who how why when where was wie warum welche qué cómo cuál quoi quel comment',
  'granted access allowed permission authorized authorised verified grant correct',
  'following subsequent below next folgende folgenden siguiente siguientes suivante suivantes',
  'given received told provided wrote written said gave been were are is',
  'task tasks question questions request requests job aufgabe aufgaben frage tarea tâche',
  'user users reader readers client customer recipient everyone people',
  'free consequences rules-free freedom liberated anything-goes limitless boundless rebel evil villain',
]

/** Words that say how somebody feels about somebody, or what is done to a body. Slurs are left to the weights. */
const AFFECT_CLASSES: readonly string[] = [
  // Insults.
  `idiot idiots idiotic moron morons moronic stupid stupidity dumb dumbass dumbest imbecile fool fools foolish clown clowns
   loser losers pathetic worthless brainless brain-dead braindead ignorant dimwit dunce halfwit nitwit simpleton dolt
   jerk jerks creep creeps creepy pig pigs rat rats snake scum scumbag trash garbage filth filthy vermin parasite
   parasites coward cowards cowardly crybaby whiner snowflake snowflakes sheep sheeple troll trolls hypocrite hypocrites
   hypocritical lunatic lunatics nutjob psycho insane senile demented delusional deranged ugly fat dipshit asshat
   dumbfuck shithead fucktard libtard libtards dickhead douche douchebag tool puppet`,
  // Swearing.
  `fuck fucking fucked fucker fuckers fck fk fuk wtf stfu gtfo shit shitty bullshit crap damn goddamn hell ass asses
   asshole assholes arse bitch bitches bastard bastards dick cock prick cunt cunts piss pissed whore slut hoe hoes pussy
   sucks suck screw`,
  // Contempt.
  `liar liars lie lies lying corrupt corruption traitor traitors treason cult propaganda evil vile disgusting disgust
   disgrace disgraceful shame shameful shameless racist racists racism nazi nazis fascist fascists communist commie
   criminal criminals crook crooks fraud thug thugs terrorist terrorists tyrant brainwashed hate hates hated hateful
   despise loathe sick rot rotten joke laughable ridiculous nonsense bs regime destroy destroyed destroying ruin ruined`,
  // Violence.
  `kill kills killed killing killer murder murdered murderer murders shoot shot shooting gun guns stab stabbed stabbing
   knife blood bloody bleed bleeding corpse corpses dead death die dies died dying beat beaten beating strangle strangled
   choke choked torture tortured slaughter massacre bomb bombs attack attacked execute executed hang hanged weapon
   weapons violence violent punch punched slap wound wounds wounded severed decapitated mutilated skull gore burn burned
   rape raped rapist`,
  // Bodies and sex.
  `sex sexual sexually sexy naked nude nudes penis vagina breasts breast boobs tits nipple nipples orgasm cum cumming
   moan moaned moaning thrust thrusting erotic porn horny lust aroused clit anal oral blowjob masturbate masturbating
   undress undressed panties bra kissed kiss bed thighs lips seduce virgin intercourse fetish bondage
   submissive dominant cocks hard wet`,
  // Harm to oneself.
  `suicide suicidal selfharm self-harm overdose overdosed cutting scars razor relapse relapsed noose pills depressed
   depression hopeless numb worthlessness starve starving anorexia purge binge`,
  // Groups of people.
  `jews jew jewish muslims muslim islam islamic christians christian catholics blacks black whites white asians asian
   mexicans mexican immigrants immigrant foreigners refugees migrants gays gay lesbians lesbian trans transgender queer
   homosexuals women woman feminists feminist arabs arab indians africans chinese gypsies disabled autistic liberals
   liberal conservatives democrats democrat republicans republican libs leftists leftist maga trump biden boomers`,
  // Children.
  'child children kid kids minor minors underage teen teens teenager preteen schoolgirl boy girl girls boys daughter son little young',
  // Kindness.
  `thanks thank love loved loves loving great nice happy beautiful hope helpful glad amazing awesome wonderful lovely
   cute enjoy enjoyed excited fun favorite favourite congrats congratulations welcome appreciate interesting cool sweet
   friend friends perfect best`,
  // Somebody spoken to or about.
  'you your youre ur u yourself he she they them him her those these people man men guy guys everyone',
  'deserve deserves should must need needs belong get go die leave back out shut',
]

/** Open addressing: place → hash of the word, or 0; and its class. Four times the words, so that most misses end at once. */
const PLACES = 4_096
const HASHES = new Int32Array(PLACES)
const NUMBERS = new Uint16Array(PLACES)

/** A word may have a class of each kind; of two classes of one kind it has the first. */
function fill(classes: readonly string[], shift: number): void {
  for (const [index, words] of classes.entries()) {
    for (const word of words.trim().split(/\s+/)) {
      const hash = hashWord(word)
      let place = placeOf(hash)
      while (HASHES[place] !== 0 && HASHES[place] !== hash) place = (place + 1) & (PLACES - 1)
      HASHES[place] = hash
      const known = NUMBERS[place] as number
      if (((known >> shift) & 255) === 0) NUMBERS[place] = known | ((index + 1) << shift)
    }
  }
}

fill(PHRASE_CLASSES, 0)
fill(AFFECT_CLASSES, 8)

/** The classes of a word by its hash: that of phrases in the low byte, that of affects above it; 0: none. */
export function classesOf(hash: number): number {
  let place = placeOf(hash)
  for (;;) {
    const found = HASHES[place]
    if (found === hash) return NUMBERS[place] as number
    if (found === 0) return 0
    place = (place + 1) & (PLACES - 1)
  }
}

function placeOf(hash: number): number {
  return (hash ^ (hash >>> 15)) & (PLACES - 1)
}
