// `make truth`: how often each source and each merge strategy names the right country. See README.md.
// `node truth/run.js --held-out` measures the known places that are held out of the design instead of the others;
// `--user-country DIR` adds the publisher's files in a folder, `--operator-lists DIR` the lists that operators publish.
import { parseArgs } from 'node:util';
import { Countries, readDatabases } from './databases.js';
import { boundPlaces, comparePlaces, compareRanges, parsed } from './measure.js';
import { isHeldOut, readPlaces } from './places.js';
import { byPriority, listStrategies } from './strategies.js';

const CLASSES = ['research', 'nic', 'ixp', 'measurement', 'vpn', 'cloud'];
const FAMILIES = [4, 6];
const HELD_OUT = ['geolite2', 'ipfire'];

const percent = (share) => (Number.isFinite(share) ? (100 * share).toFixed(1) : '–');
const mean = (numbers) => numbers.reduce((sum, number) => sum + number, 0) / numbers.length;

const { values: options } = parseArgs({
  options: {
    'held-out': { type: 'boolean', default: false },
    'user-country': { type: 'string' },
    'operator-lists': { type: 'string' },
  },
});
const heldOutPlaces = options['held-out'];
const countries = new Countries();
const databases = await readDatabases(countries, {
  userCountry: options['user-country'],
  operatorLists: options['operator-lists'],
});
for (const [name, { date, v4, v6 }] of Object.entries(databases)) {
  console.log(`${name.padEnd(10)} ${date}  ${v4.count} IPv4 and ${v6.count} IPv6 rows`);
}
const places = readPlaces()
  .filter(({ operator }) => isHeldOut(operator) === heldOutPlaces)
  .map((place) => ({ ...place, ...parsed(place.address), value: countries.index(place.country) }));
const dates = places.map(({ date }) => date).sort();
console.log(
  `${places.length} known places, ${heldOutPlaces ? 'those held out' : 'without those held out'}, ${dates[0]} to ${dates.at(-1)}`,
);
console.log('Delegations are taken from the rows of rir, in which neighbors of one country are one row.\n');

const delegations = byPriority(databases, ['rir']);
const references = HELD_OUT.filter((name) => name in databases).map((name) => [name, byPriority(databases, [name])]);

const results = listStrategies(databases).map((strategy) => {
  const ranges = strategy.merge?.();
  const counts = ranges ? comparePlaces(ranges, places, countries) : boundPlaces(strategy.bound(), places, countries);
  const families = FAMILIES.map((family) => {
    const inFamily = Object.entries(counts).filter(([key]) => key.startsWith(`v${family} `));
    const total = inFamily.reduce((sum, [, count]) => sum + count.total, 0);
    return {
      classes: CLASSES.map((kind) => {
        const { right, total } = counts[`v${family} ${kind}`] ?? { right: 0, total: 0 };
        return right / total;
      }),
      euWrong: inFamily.reduce((sum, [, count]) => sum + count.euWrong, 0) / total,
      against: references
        .filter(([name]) => ranges !== undefined && name !== strategy.name)
        .map(([name, other]) => [
          name,
          compareRanges(ranges[`v${family}`], other[`v${family}`], delegations[`v${family}`], countries),
        ]),
    };
  });
  return { ...strategy, families };
});

/** The mean of the classes and of the held-out databases by delegation, all with the same weight, both families. */
const score = ({ families }) =>
  mean(
    families.map(({ classes, against }) => {
      const known = mean(classes.filter(Number.isFinite));
      return mean([known, ...against.map(([, { delegations: share }]) => share)]);
    }),
  );

const width = Math.max(...results.map(({ name }) => name.length));
for (const [index, family] of FAMILIES.entries()) {
  const columns = [...CLASSES.map((name) => name.slice(0, 8)), 'EU wrong'];
  for (const [name] of references) columns.push(`${name} a`, `${name} d`, `${name} EU`, `${name} e`);
  console.log([`IPv${family}`.padEnd(width), ...columns.map((column) => column.padStart(11))].join(''));
  for (const { name, families } of results) {
    const { classes, euWrong, against } = families[index];
    const byName = new Map(against);
    const cells = [...classes, euWrong];
    for (const [reference] of references) {
      const share = byName.get(reference);
      cells.push(share?.addresses, share?.delegations, share?.eu, share?.everywhere);
    }
    console.log([name.padEnd(width), ...cells.map((cell) => percent(cell).padStart(11))].join(''));
  }
  console.log();
}
console.log('Percent right, by class; EU wrong: percent of the known places with a wrong EU flag. Against a held-out');
console.log(
  'database: a = by addresses, d = by delegations, EU = percent of addresses with another EU flag; e = by addresses,',
);
console.log('also outside of delegations.');
console.log('any of …: the places at which at least one of the sources is right, which no strategy can exceed.\n');

const ranking = results.filter(({ candidate }) => candidate).sort((a, b) => score(b) - score(a));
for (const result of ranking) console.log(`${percent(score(result)).padStart(6)}  ${result.name}`);
const winner = ranking.find(({ whois }) => !whois);
console.log(`\nWinner: ${ranking[0].name}; without WHOIS: ${winner.name}`);
