// Looks up the addresses that are given as arguments: node examples/lookup.mjs 8.8.8.8 2001:db8::1
import { openDatabase } from 'ipatlas';

const database = openDatabase(process.env.IPATLAS_DATA ?? 'data');
for (const address of process.argv.slice(2)) {
  const result = database.lookupWithReason(address);
  if (result === undefined) console.log(`${address}: not an IP address`);
  else if (result.country === null) console.log(`${result.ip}: no country (${result.reason})`);
  else console.log(`${result.ip}: ${result.country}${result.is_eu ? ', in the European Union' : ''}`);
}
database.close();
