/** The limits as documentation and schemas give them, made from src/limits.ts: "npm run docs" writes them, a test compares. */
import * as limits from '../dist/src/limits.js';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/**
 * By file, each text that has limits. In it, `{NAME}` is a limit and `{NAME / UNIT}` a limit in a unit.
 */
const TEXTS = {
  'docs/bulk.md': [
    '| line of JSON lines, a list, an access log, logfmt or text | {MAX_LINE_BYTES / MIB} MiB;',
    '| nesting of a line, of an item of a JSON document | {MAX_JSON_DEPTH} levels;',
    '| fields in one run | {MAX_FIELDS};',
    '| steps in a path, bytes in a key | {MAX_PATH_KEYS}, {MAX_KEY_BYTES} |',
    '| index of an element | {MAX_ARRAY_INDEX} |',
    '| line of text with `--inline` | {MAX_INLINE_BYTES / MIB} MiB;',
    '| text that is searched with `--lenient` | {MAX_LENIENT_BYTES} bytes;',
    '| text of a JSON field that is searched with `--in-text` | {MAX_SEARCHED_BYTES / MIB} MiB;',
    '| CSV or TSV record | {MAX_CSV_RECORD_BYTES / MIB} MiB;',
    '| line of W3C or Zeek | {MAX_CSV_RECORD_BYTES / MIB} MiB;',
    '| item of a JSON document | {MAX_JSON_ITEM_BYTES / MIB} MiB;',
    '| `--jobs` | {MAX_JOBS} |',
  ],
  'docs/api.md': [
    'for a JSON array of up to {MAX_BATCH} addresses',
    'counts as {HISTORY_COST} addresses',
    'rate of their own (default {DEFAULT_RATE};',
    'valid for {PAGE_KEY_MS / MINUTE_MS} minutes, and works only',
    'up {PAGE_RATE} addresses a minute from one network',
    '| addresses in a batch | {MAX_BATCH} |',
    '| past days that are held open for `?at=` | {MAX_OPEN_DAYS},',
    '| request body | {MAX_BODY_BYTES} bytes |',
    '| request line and headers | {MAX_HEADER_BYTES} bytes |',
    '| time to send the headers, the whole request | {HEADERS_TIMEOUT_MS / 1000} s, {REQUEST_TIMEOUT_MS / 1000} s |',
    '| idle connection | {KEEP_ALIVE_TIMEOUT_MS / 1000} s |',
    '| addresses in a batch of the page | {MAX_PAGE_BATCH} |',
    '| addresses in a batch of the page that the browser looks up | {MAX_BROWSER_BATCH} |',
    '| addresses a minute, by the page, of one network | {PAGE_RATE} |',
    '| key of the page | valid for {PAGE_KEY_MS / 1000} s |',
    '| addresses a minute of a self-issued key | {SIGN_UP_RATE} |',
    '| self-issued key | valid for {SELF_ISSUED_KEY_MS / DAY_MS} days |',
    '| self-issued keys in an hour, of an IPv4 address or a /64, a /56, a /48 | {SIGN_UPS_PER_NETWORK.64}, {SIGN_UPS_PER_NETWORK.56}, {SIGN_UPS_PER_NETWORK.48} |',
  ],
  'docs/reference.md': [
    'print a warning (default {DEFAULT_MAX_AGE_DAYS})',
    '| text of an address | {MAX_ADDRESS_LENGTH} characters |',
    '| sources in a build | {MAX_SOURCES} |',
    '| one download | {MAX_DOWNLOAD_BYTES / GIB} GiB; unpacked {MAX_UNPACKED_BYTES / GIB} GiB; {MAX_ARCHIVE_ENTRIES} files in an archive; {FETCH_DEADLINE_MS / MINUTE_MS} minutes with all tries |',
    '| CSV row of a source | {MAX_CSV_ROW_BYTES} bytes |',
    '| {MAX_LABEL_COLUMNS} columns and {MAX_LABEL_ROWS} rows in at most 16 files; {MAX_LABEL_LENGTH} characters a value; {MAX_LABEL_TEXT} characters',
    '| records of an MMDB source | {MAX_MMDB_STEPS} ',
    '| rows kept in `rejects.ndjson` | {MAX_REJECTS_WRITTEN} per source |',
    '| releases kept | {KEPT_RELEASES}, and {KEPT_REFUSED} refused ones |',
    '| releases in a signed repository | {REPOSITORY_RELEASES} |',
    '| metadata file of a repository | {MAX_METADATA_BYTES / 1024} KiB; the timestamp {MAX_TIMESTAMP_BYTES / 1024} KiB |',
    "| one try of a pull's request | {METADATA_TRY_TIMEOUT_MS / 1000} s for metadata, {PULL_TRY_TIMEOUT_MS / 1000} s for a file",
    'that one pull follows | {MAX_ROOT_VERSIONS} |',
    '| compact form | {MAX_COMPACT_BYTES / MIB} MiB unpacked |',
  ],
  'docs/rebuild.md': [
    'ipaddr.js reads {CHECKED_ROWS} rows of each file (all rows of overrides.csv, and up to {MAX_CHECKED_FEED_ROWS} of a geofeed)',
    'on standard output is the file (at most {MAX_DOWNLOAD_BYTES / GIB} GiB)',
    '`5m`; {FETCH_DEADLINE_MS / MINUTE_MS} minutes unless given)',
    'at most {MAX_LABEL_LENGTH} characters, without control characters',
    'All files have at most {MAX_LABEL_COLUMNS} columns and {MAX_LABEL_ROWS} rows.',
    'else {DEFAULT_MAX_AGE_DAYS} days)',
  ],
  'docs/distribution.md': [
    '| root | which keys the roles have | 2 of 3 | {SIGNATURE_DAYS.root} days |',
    '| targets | which releases there are, and the current one | 1 of 1 | {SIGNATURE_DAYS.targets} days |',
    '| snapshot | the version of targets | 1 of 1 | {SIGNATURE_DAYS.snapshot} days |',
    '| timestamp | the version of snapshot | 1 of 1 | {SIGNATURE_DAYS.timestamp} days |',
  ],
  'schemas/sources.schema.json': [
    'the new one included; {KEPT_RELEASES} unless given',
    'before the build fails, 0 to 1; {DEFAULT_MAX_REJECT_SHARE} unless given',
    'such as \\"30s\\"; {FETCH_DEADLINE_MS / MINUTE_MS}m unless given',
  ],
};

const UNITS = { GIB, MIB, MINUTE_MS, DAY_MS };

/** Returns a limit as texts write it. */
function written(expression) {
  const [name, unit = '1'] = expression.split(' / ');
  const value = name.split('.').reduce((object, member) => object?.[member], limits);
  if (typeof value !== 'number') throw new Error(`there is no limit ${name}`);
  return (value / (UNITS[unit] ?? Number(unit))).toLocaleString('en-US', { maximumFractionDigits: 6 });
}

/** The files that have limits. */
export const FILES_WITH_LIMITS = Object.keys(TEXTS);

/** Returns a file's text with the limits that the code has. Throws if it lacks one of the texts with limits. */
export function withLimits(file, content) {
  return TEXTS[file].reduce((text, template) => {
    const parts = template.split(/\{(.*?)\}/);
    const pattern = parts.map((part, i) =>
      i % 2 === 0 ? part.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&') : '[\\d.,]*\\d',
    );
    const found = new RegExp(pattern.join(''));
    if (!found.test(text)) throw new Error(`${file} does not have: ${template}`);
    return text.replace(found, () => parts.map((part, i) => (i % 2 === 0 ? part : written(part))).join(''));
  }, content);
}
