/**
 * Compares a database of @ipatlas/lookup with a list of `boundaries`. It runs in every runtime, so it is plain JavaScript.
 *
 * @param db the database
 * @param {string} list one address and its result on each line
 * @returns the number of addresses, and the first wrong ones
 */
export function checkLookups(db, list) {
  const wrong = [];
  let count = 0;
  for (const line of list.split('\n')) {
    if (line === '') continue;
    count++;
    const [ip, expected] = line.split(' ');
    const found = db.lookupWithReason(ip);
    const shared = db.country(ip);
    const isRight =
      (found?.country_code ?? found?.reason) === expected &&
      shared?.country_code === found?.country_code &&
      db.lookup(ip)?.country === shared?.country;
    if (!isRight && wrong.length < 5) wrong.push(`${line}: ${JSON.stringify(found)}`);
  }
  return { count, wrong };
}
