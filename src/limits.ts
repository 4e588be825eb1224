/** Every limit in one place, each with its unit and its reason. */

/** Longest text that can be an address, in characters: eight groups of four, six of them with a dotted-decimal tail (RFC 4291 §2.2). */
export const MAX_ADDRESS_LENGTH = 45;

/** Sources in one build. Which sources answered a range is kept as a 32-bit set, and a few layers are our own. */
export const MAX_SOURCES = 24;

/** Default share of a source's rows that may be unreadable before the build fails: 0.1 %. */
export const DEFAULT_MAX_REJECT_SHARE = 0.001;

/** Longest CSV row in bytes. A row of a country list has some 100; far more means a quote that was never closed. */
export const MAX_CSV_ROW_BYTES = 65_536;

/** Releases kept when a new one is published; the current one is among them. */
export const KEPT_RELEASES = 5;

/** Largest download in bytes (1 GiB); the largest country source known is below 100 MB. */
export const MAX_DOWNLOAD_BYTES = 1_073_741_824;

/** Largest size in bytes that a downloaded archive may unpack to (4 GiB): a guard against decompression bombs. */
export const MAX_UNPACKED_BYTES = 4_294_967_296;

/** How often a failed download is tried again, and the longest one try may stay silent, in milliseconds. */
export const FETCH_RETRIES = 4;
export const FETCH_IDLE_TIMEOUT_MS = 30_000;

/** Longest CSV record that is enriched, in bytes (4 MiB). What goes on past it is a quote that was never closed. */
export const MAX_CSV_RECORD_BYTES = 4_194_304;

/** Longest item, or single value, of a JSON document that is enriched, in bytes (64 MiB): it has to be held in memory. */
export const MAX_JSON_ITEM_BYTES = 67_108_864;

/** Most worker threads of one enrichment: more than any machine has cores, and still harmless. */
export const MAX_JOBS = 256;
