/** The day of a date as the kernel reads it, with the library's dates and without any care for speed. */

const ISO = /^(\d{4})-(\d\d)-(\d\d)(?:[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?: ?[Zz]| ?([+-])(\d\d):?(\d\d))?)?$/;
const LOG = /^(\d\d)\/([A-Z][a-z][a-z])\/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d):?(\d\d)$/;
const NUMBER = /^(-?)(\d{1,19})(\.\d+)?$/;
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const DAY_MS = 86_400_000;

function dayOfParts(year: number, month: number, day: number, time: string[], offset: string[]): number | undefined {
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  const [hour = 0, minute = 0, second = 0] = time.filter(Boolean).map(Number);
  const [sign = '+', hours = '0', minutes = '0'] = offset;
  if (hour > 23 || minute > 59 || second > 60 || Number(hours) > 23 || Number(minutes) > 59) return undefined;
  const ahead = (sign === '-' ? -1 : 1) * (60 * Number(hours) + Number(minutes));
  const seconds = 3600 * hour + 60 * minute + Math.min(second, 59) - 60 * ahead;
  return Math.floor((date.getTime() + 1000 * seconds) / DAY_MS);
}

/** Returns the day of a date in days since 1970; undefined if the text is none. */
export function dayOfText(text: string): number | undefined {
  if (text.length > 64) return undefined;
  const iso = ISO.exec(text);
  if (iso !== null) {
    const [year, month, day] = iso.slice(1, 4).map(Number) as [number, number, number];
    return dayOfParts(year, month, day, iso.slice(4, 7), iso.slice(7, 10));
  }
  const log = LOG.exec(text);
  if (log !== null && text.length === 26) {
    const month = MONTHS.indexOf(log[2]!) + 1;
    return month === 0
      ? undefined
      : dayOfParts(Number(log[3]), month, Number(log[1]), log.slice(4, 7), log.slice(7, 10));
  }
  const number = NUMBER.exec(text);
  if (number === null) return undefined;
  const [, sign, digits, fraction = ''] = number;
  const value = BigInt(digits!);
  const unit = value < 10n ** 11n ? 1n : value < 10n ** 14n ? 1000n : value < 10n ** 17n ? 10n ** 6n : 10n ** 9n;
  const perDay = 86_400n * unit;
  if (sign === '') return Number(value / perDay);
  const isWhole = /^\.?0*$/.test(fraction) && value % perDay === 0n;
  return 0 - Number(value / perDay) - (isWhole ? 0 : 1);
}
