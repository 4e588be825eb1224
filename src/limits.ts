/** Every limit in one place, each with its unit and its reason. */

/** Longest text that can be an address, in characters: eight groups of four, six of them with a dotted-decimal tail (RFC 4291 §2.2). */
export const MAX_ADDRESS_LENGTH = 45;

/** Sources in one build. Which sources answered a range is kept as a 32-bit set, and a few layers are our own. */
export const MAX_SOURCES = 24;

/** Default share of a source's rows that may be unreadable before the build fails: 0.1 %. */
export const DEFAULT_MAX_REJECT_SHARE = 0.001;

/** Longest CSV row in bytes. A row of a country list has some 100; far more means a quote that was never closed. */
export const MAX_CSV_ROW_BYTES = 65_536;

/** Longest country code in a source, in characters. ISO 3166-1 has 2 or 3, and `unknown` is a code to some; more is another column's text. */
export const MAX_COUNTRY_CODE_LENGTH = 8;

/** Different country codes in one source. ISO 3166-1 assigns about 250; a thousand means that the country column is another one. */
export const MAX_CODES_PER_SOURCE = 1000;

/** Unreadable rows that are written to `rejects.ndjson`, for one source: enough to see what is wrong. All are counted. */
export const MAX_REJECTS_WRITTEN = 1000;

/** Text that is kept of an unreadable row, in characters; a good row has some 100. */
export const MAX_REJECT_TEXT = 500;

/**
 * Records of a tree that are looked at while an MMDB source is read. A file of countries takes some 3 million, the largest
 * files of cities some 20 million; a hostile one can stand for 2^128 networks in a kilobyte.
 */
export const MAX_MMDB_STEPS = 40_000_000;

/** Releases kept when a new one is published; the current one is among them. */
export const KEPT_RELEASES = 5;

/** Refused releases kept for a look; each is some 30 MB, and the last few nights tell the story. */
export const KEPT_REFUSED = 3;

/**
 * What the gates between verify and publish let through; `gates` in sources.json overrules each.
 *
 * The measure is the distance between two databases made by different methods from different data (geo-whois-asn-country
 * and asn-country of ip-location-db, 2.3.2026061719): 4.3 % of the IPv4 and 5.1 % of the IPv6 space changes country from
 * one to the other, and the longest stretch without one address in common has 1.9 million IPv4 addresses. One night must
 * stay well below that; the same source a month later does.
 */
export const DEFAULT_GATES = {
  /** Shares of the addresses with a country that may have another one now. */
  maxChangedShareIPv4: 0.02,
  maxChangedShareIPv6: 0.02,
  /** Shares of the addresses with a country that may have none now. */
  maxLostShareIPv4: 0.01,
  maxLostShareIPv6: 0.01,
  /** Share of its addresses that one country may lose: two countries that are swapped lose all, however small they are. */
  maxCountryLossShare: 0.5,
  /** Countries that may be gone altogether. The smallest have a few thousand IPv6 /48s and do not come and go. */
  maxVanishedCountries: 0,
  /** Longest stretch that may change as a whole: IPv4 addresses (a /10; twice the measure), IPv6 /48s (a /19, the largest allocation there is). */
  maxBlockIPv4: 4_194_304,
  maxBlockIPv6: 536_870_912,
  /** Share by which a source's number of rows may grow or shrink. */
  maxRowsChange: 0.2,
  /** Sentinel addresses that may have a wrong answer, or lose the right one. */
  maxWrongSentinels: 0,
};

/** A country with fewer addresses (IPv4), or fewer /48s (IPv6), does not count for `maxCountryLossShare`: one network may be half of it. */
export const MIN_COUNTRY_SIZE = 65_536;

/** A source whose rows change by no more than this does not count for `maxRowsChange`: lists kept by hand do so at any time. */
export const MIN_ROWS_CHANGE = 100;

/** Lines in the tables of what moved, and blocks below them, where a person reads them. */
export const PAIRS_SHOWN = 10;
export const BLOCKS_SHOWN = 5;

/** Longest random delay of a scheduled build in seconds, unless told otherwise: five minutes spread a crowd well enough. */
export const SCHEDULE_JITTER_S = 300;

/** First wait before a scheduled build that failed is tried again, and the longest, in milliseconds; it doubles in between. */
export const SCHEDULE_RETRY_MS = 60_000;
export const SCHEDULE_MAX_RETRY_MS = 3_600_000;

/** How often a schedule looks at the clock while it waits, in milliseconds: the machine may sleep, or the clock be set. */
export const SCHEDULE_CLOCK_MS = 60_000;

/** How long a scheduled build that is told to stop may go on to the end of its stage, in milliseconds. */
export const SCHEDULE_STOP_MS = 10_000;

/**
 * Age of the data in days above which a warning is given, and never more than a warning. Country sources appear monthly at
 * the slowest, so older data means builds that fail unseen.
 */
export const DEFAULT_MAX_AGE_DAYS = 35;

/** Largest download in bytes (1 GiB); the largest country source known is below 100 MB. */
export const MAX_DOWNLOAD_BYTES = 1_073_741_824;

/** Largest size in bytes that a downloaded archive may unpack to (4 GiB): a guard against decompression bombs. */
export const MAX_UNPACKED_BYTES = 4_294_967_296;

/** How often a failed download is tried again, and the longest one try may stay silent, in milliseconds. */
export const FETCH_RETRIES = 4;
export const FETCH_IDLE_TIMEOUT_MS = 30_000;

/** Fields in one enrichment, keys in a field's path, and bytes of a key: far more than anyone asks for, and small enough for
 * the kernel's tables. */
export const MAX_FIELDS = 64;
export const MAX_PATH_KEYS = 64;
export const MAX_KEY_BYTES = 1024;

/**
 * Longest line in bytes (16 MiB). A longer one is treated as one that is no JSON object: it passes in pieces, so that memory
 * stays bounded. Twice this much is held while such a line is worked on.
 */
export const MAX_LINE_BYTES = 16_777_216;

/** Levels of nesting that are followed in a line; a line that goes deeper is treated as one that is no JSON object. */
export const MAX_JSON_DEPTH = 1_000_000;

/** Bytes that the line engine reads, works on and writes at a time: small enough for a core's cache, large enough that what
 * is done once a block does not count. */
export const ENRICH_BLOCK_BYTES = 262_144;

/** Problems of a configuration file named in one error message; enough to mend most files at once, and still to read. */
export const MAX_REPORTED_PROBLEMS = 20;

/** Longest time in milliseconds that one try of a download may take in all (30 minutes): a server may trickle for ever. */
export const FETCH_TRY_TIMEOUT_MS = 1_800_000;

/** First wait before a download is tried again, and the longest, in milliseconds; it doubles in between, with jitter. */
export const FETCH_BACKOFF_MS = 1_000;
export const FETCH_MAX_BACKOFF_MS = 30_000;

/** The longest `Retry-After` that is waited for, in milliseconds; a server that asks for more gets the next try early. */
export const MAX_RETRY_AFTER_MS = 120_000;

/** Redirects followed for one download; more is a loop. */
export const MAX_REDIRECTS = 5;

/** Sources fetched at the same time: each npm process takes some 80 MB. */
export const FETCH_CONCURRENCY = 4;

/** Longest run of one npm process in milliseconds (10 minutes); npm has retries and timeouts of its own below that. */
export const NPM_TIMEOUT_MS = 600_000;

/** Entries in a zip archive; the largest country archive known has a dozen. More is an attack, or the wrong file. */
export const MAX_ARCHIVE_ENTRIES = 10_000;

/** Longest CSV record that is enriched, in bytes (4 MiB). What goes on past it is a quote that was never closed. */
export const MAX_CSV_RECORD_BYTES = 4_194_304;

/** Longest item, or single value, of a JSON document that is enriched, in bytes (64 MiB): it has to be held in memory. */
export const MAX_JSON_ITEM_BYTES = 67_108_864;

/** Most worker threads of one enrichment: as many as fit into the kernel's 2 GiB. Each takes some 10 MB. */
export const MAX_JOBS = 256;

/** Addresses in one batch request, as the wire contract says. */
export const MAX_BATCH = 1_000;

/** Longest request body in bytes: a thousand addresses take at most 48 kB; the rest is room for blanks and line breaks. */
export const MAX_BODY_BYTES = 262_144;

/** Longest request line and headers together, in bytes: Node's own default, written down because answers depend on it. */
export const MAX_HEADER_BYTES = 16_384;

/** Time in milliseconds that a client has to send the headers, and the whole request: against clients that trickle. */
export const HEADERS_TIMEOUT_MS = 10_000;
export const REQUEST_TIMEOUT_MS = 20_000;

/** Time in milliseconds that a connection may stand still within an answer, and idle between two requests. */
export const SOCKET_TIMEOUT_MS = 30_000;
/** Longer than the 60 s after which common load balancers give an idle connection up: they should be the first to close. */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000;

/** On SIGTERM: milliseconds during which `/readyz` says no while requests are still taken, for load balancers to notice … */
export const LEAVE_MS = 500;
/** … then those during which a connection that is open may still bring a request, when no new one is accepted … */
export const DRAIN_GRACE_MS = 250;
/** … and the longest wait for answers under way after that. */
export const DRAIN_TIMEOUT_MS = 10_000;

/** How often the current release and the keys are looked at, in milliseconds; the promises are 2 s and 1 s. */
export const RELEASE_POLL_MS = 500;
export const KEYS_POLL_MS = 250;

/** The window of the rate limit in milliseconds: rates are in addresses a minute. */
export const RATE_WINDOW_MS = 60_000;

/** Addresses a minute for a key that has no rate of its own: a runaway client is stopped, a bulk user is not. */
export const DEFAULT_RATE = 1_000_000;

/** Share of a key's rate that a worker process draws ahead from the common count: one message a thousandth, not one a request. */
export const RATE_LEASE_SHARE = 0.001;
