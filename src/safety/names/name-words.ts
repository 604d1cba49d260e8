/**
 * Words that the tagger of names knows by kind, written by us: what stands before a name, what streets are called, and
 * given names that are common in several countries. Everything else it has from its training.
 */
export const NO_CLASS = 0

const WORDS: readonly string[] = [
  // 1: titles
  'mr mrs ms miss mx dr prof professor sir madam madame herr frau monsieur signor signora senor señor señora don sra sr captain president minister senator judge officer sergeant uncle aunt',
  // 2: given names
  `james john robert michael william david richard joseph thomas charles christopher daniel matthew anthony mark donald
  steven paul andrew joshua kenneth kevin brian george timothy ronald edward jason jeffrey ryan jacob gary nicholas eric
  jonathan stephen larry justin scott brandon benjamin samuel gregory alexander patrick jack dennis jerry tyler aaron jose
  adam nathan henry douglas zachary peter kyle noah ethan jeremy walter christian keith roger terry austin sean gerald carl
  harold dylan arthur lawrence jordan jesse bryan billy bruce gabriel joe logan alan juan albert willie elijah wayne randy
  vincent mason roy ralph bobby russell bradley philip eugene liam lucas leo oscar hugo felix max moritz jonas lukas finn
  mary patricia jennifer linda elizabeth barbara susan jessica sarah karen lisa nancy betty sandra margaret ashley kimberly
  emily donna michelle carol amanda melissa deborah stephanie rebecca sharon laura cynthia dorothy amy kathleen angela
  shirley emma brenda pamela nicole anna samantha katherine christine helen debra rachel carolyn janet maria catherine
  heather diane olivia julie joyce victoria ruth virginia lauren kelly christina joan evelyn judith andrea hannah jacqueline
  cheryl megan martha gloria teresa sara janice ann kathryn abigail sophia frances jean alice judy isabella julia grace
  amber denise danielle marilyn beverly charlotte natalie theresa diana brittany doris kayla alexis lori marie sophie lena
  mia clara eva ida ella nora lea klara greta heidi ingrid astrid sofia elena olga irina natasha svetlana tatiana ivan
  dmitri sergei vladimir alexei boris nikolai andrei mikhail pavel jan piotr tomasz marek krzysztof agnieszka katarzyna
  magdalena ewa jiri pavla petra istvan laszlo zoltan katalin ferenc giovanni giuseppe marco luca matteo francesco giulia
  chiara francesca alessandro paolo carlos luis miguel antonio francisco javier manuel pedro pablo diego fernando carmen
  pilar lucia rosa ana joao rui tiago beatriz pierre michel philippe alain luc claire camille amelie nathalie isabelle hans
  klaus jurgen wolfgang dieter stefan uwe ulrich sabine monika ursula birgit anke lars erik nils sven bjorn olaf karin
  ahmed mohammed muhammad mohamed ali omar hassan hussein ibrahim yusuf mustafa mehmet fatma aisha fatima layla amir reza
  raj ravi sanjay amit anil sunil vijay priya anita deepa lakshmi arjun wei ming li jing xin yan hiroshi takashi kenji yuki
  akira haruki sakura minh nguyen linh kim jin min chidi kwame kofi amara ngozi tom tim ben sam dan mike dave steve bob bill
  jim matt nick alex chris kate jane sally jenny lucy molly ellen irene rita`,
  // 3: streets
  `street st avenue ave road rd lane ln drive dr boulevard blvd court ct place pl square sq terrace way highway hwy parkway
  close crescent grove gardens walk row alley circle trail pike plaza straße strasse str gasse allee platz weg rue chemin
  impasse quai calle avenida carrera plaza paseo via viale piazza corso rua travessa ulica ul ulice utca út väg gata vägen
  gatan gade vej vejen veien straat laan plein weg kuja katu tie polku`,
  // 4: parts of addresses
  'apt apartment suite unit floor flat room building bldg box p.o po postbox postfach zip postcode zipcode psc apo fpo dpo cmr',
  // 5: words before a name
  'name named called names by signed sincerely regards from contact attn attention calls nickname surname cheers',
  // 6: greetings
  'hi hello dear hey hallo hola bonjour thanks thank goodbye bye welcome',
  // 7: words before an address
  'address at in to live lives lived living located location ship shipping deliver delivered moved moving near residence resides addresses mail mailed send sent visit corner',
  // 8: days, months, languages
  `monday tuesday wednesday thursday friday saturday sunday january february march april june july august september october
  november december english french german spanish italian russian chinese japanese european american british internet`,
  // 9: companies
  'inc ltd llc corp corporation company co group gmbh ag sa plc limited university bank institute association foundation orchestra band school college hotel museum church hospital agency ministry department committee',
  // 10: relations, acts of a person
  `brother sister mother father mom dad son daughter wife husband friend colleague boss manager doctor said says told asked
  wrote who whose he she his her met born singer actor author patient customer client mister teacher neighbor neighbour`,
  // 11: countries
  `usa uk germany france spain italy poland sweden norway denmark finland netherlands belgium austria switzerland canada
  australia brazil mexico india china japan russia ireland portugal greece hungary kingdom states zealand africa america`,
  // 12: common words that often begin a sentence
  `the a an and or but if then so because when while where what why how which this that these those there here it its i we
  you they he's my your our their me us them is are was were be been being am do does did have has had can could will would
  shall should may might must not no yes please write give tell show make explain describe list find use let get go take
  see look try add create help need want know think for with without about into over after before between of on as also
  more most some any all each every both few many much other another such only own same than too very just now new good best
  first last one two three next please translate summarize summarise compare sort return import export class function
  const note step example answer question more once until since although however therefore thus dear does did were ok okay
  sorry sure maybe never always often today tomorrow yesterday`,
  // 13: particles of names
  'van von de der den la le du da dos del di mac mc bin ibn al el ter jr sr iii ii',
]

/** A word in small letters → its kind; the first kind that has it. */
export const WORD_CLASSES: ReadonlyMap<string, number> = classesOf(WORDS)

function classesOf(lists: readonly string[]): ReadonlyMap<string, number> {
  const classes = new Map<string, number>()
  for (const [i, list] of lists.entries())
    for (const word of list.split(/\s+/)) if (!classes.has(word)) classes.set(word, i + 1)
  return classes
}
