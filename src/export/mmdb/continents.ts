/**
 * Continents, for readers that expect them beside the country.
 *
 * Which country belongs where follows the convention of GeoNames, which GeoIP2 data follows too: every country has one
 * continent (Russia and Cyprus Europe, Türkiye and Georgia Asia), islands that of the region they are counted to.
 */

export interface Continent {
  /** `AF`, `AN`, `AS`, `EU`, `NA`, `OC` or `SA`. */
  code: string;
  /** English name. */
  name: string;
}

/** Code, name, and the countries by their ISO 3166-1 alpha-2 codes (and XK). */
const CONTINENTS: readonly [code: string, name: string, countries: string][] = [
  [
    'AF',
    'Africa',
    `AO BF BI BJ BW CD CF CG CI CM CV DJ DZ EG EH ER ET GA GH GM GN GQ GW KE KM LR LS LY MA MG ML MR MU MW MZ NA NE NG RE
     RW SC SD SH SL SN SO SS ST SZ TD TG TN TZ UG YT ZA ZM ZW`,
  ],
  ['AN', 'Antarctica', 'AQ BV GS HM TF'],
  [
    'AS',
    'Asia',
    `AE AF AM AZ BD BH BN BT CC CN CX GE HK ID IL IN IO IQ IR JO JP KG KH KP KR KW KZ LA LB LK MM MN MO MV MY NP OM PH PK
     PS QA SA SG SY TH TJ TM TR TW UZ VN YE`,
  ],
  [
    'EU',
    'Europe',
    `AD AL AT AX BA BE BG BY CH CY CZ DE DK EE ES FI FO FR GB GG GI GR HR HU IE IM IS IT JE LI LT LU LV MC MD ME MK MT NL
     NO PL PT RO RS RU SE SI SJ SK SM UA VA XK`,
  ],
  [
    'NA',
    'North America',
    `AG AI AW BB BL BM BQ BS BZ CA CR CU CW DM DO GD GL GP GT HN HT JM KN KY LC MF MQ MS MX NI PA PM PR SV SX TC TT US VC
     VG VI`,
  ],
  ['OC', 'Oceania', 'AS AU CK FJ FM GU KI MH MP NC NF NR NU NZ PF PG PN PW SB TK TL TO TV UM VU WF WS'],
  ['SA', 'South America', 'AR BO BR CL CO EC FK GF GY PE PY SR UY VE'],
];

/** The continent of each country, by its code. */
export function continentTable(): ReadonlyMap<string, Continent> {
  return new Map(
    CONTINENTS.flatMap(([code, name, countries]) =>
      countries.split(/\s+/).map((country): [string, Continent] => [country, { code, name }]),
    ),
  );
}
