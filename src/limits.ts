/**
 * The limits that users and operators can meet, by topic, each with its unit and its reason. The sizes of one
 * algorithm's buffers are next to that algorithm.
 */

// Addresses

/**
 * Longest text that can be an address, in characters: an IPv6 address of six groups of four digits and a dotted-decimal
 * tail (RFC 4291 §2.2).
 */
export const MAX_ADDRESS_LENGTH = 45;

// Configuration

/** Problems of a configuration file that one error message names: enough to fix most files at once. */
export const MAX_REPORTED_PROBLEMS = 20;

/** Sources in one build. The sources of a range are stored as a 32-bit set, which also has bits for our own layers. */
export const MAX_SOURCES = 24;

// Fetching sources

/** Largest download in bytes (1 GiB). The largest known country source is below 100 MB. */
export const MAX_DOWNLOAD_BYTES = 1_073_741_824;

/** Largest size in bytes that a downloaded archive may unpack to (4 GiB): a guard against decompression bombs. */
export const MAX_UNPACKED_BYTES = 4_294_967_296;

/** Entries in a zip archive. The largest known country archive has a dozen. */
export const MAX_ARCHIVE_ENTRIES = 10_000;

/** First wait before a retry, in milliseconds. Each later wait is twice as long, with jitter. */
export const FETCH_BACKOFF_MS = 1_000;

/** Longest wait before a retry, in milliseconds. */
export const FETCH_MAX_BACKOFF_MS = 30_000;

/** Longest time in milliseconds in which one try may receive nothing. */
export const FETCH_IDLE_TIMEOUT_MS = 30_000;

/**
 * Longest time in milliseconds that one download may take, with all its retries (10 minutes): a server may send a few bytes at
 * a time forever. The largest default source takes 4 minutes at a megabit a second.
 */
export const FETCH_DEADLINE_MS = 600_000;

// Labels, the users' own columns

/** Columns of all files of labels. */
export const MAX_LABEL_COLUMNS = 16;
/** Rows of all files of labels. */
export const MAX_LABEL_ROWS = 1_000_000;
/** Longest value of a label, in characters. */
export const MAX_LABEL_LENGTH = 256;
/** Text of all different rows of labels, in characters: their file and what is made of them have to fit into memory. */
export const MAX_LABEL_TEXT = 134_217_728;

// Reading sources

/** Longest CSV row in bytes. A row of a country list has about 100; far more means a quote that was never closed. */
export const MAX_CSV_ROW_BYTES = 65_536;

/** Default share of a source's rows that may be unreadable before the build fails: 0.1 %. */
export const DEFAULT_MAX_REJECT_SHARE = 0.001;

/** Longest name of a network in characters; the rest is cut off. The longest of the 91,000 in June 2026 has 169. */
export const MAX_NETWORK_NAME = 256;

/** Rows of each file that are checked before a release is published; it takes a second and a half for all default sources. */
export const CHECKED_ROWS = 2000;

/** Rows of each file of a geofeed that are checked before a release is published: all of those of nearly every operator. */
export const MAX_CHECKED_FEED_ROWS = 20_000;

/** Unreadable rows of one source that are written to `rejects.ndjson`. All are counted. */
export const MAX_REJECTS_WRITTEN = 1000;

/**
 * Tree nodes visited while an MMDB source is read. A file of countries has about 3 million and the largest files of cities
 * about 20 million. A malicious file can describe 2^128 networks in a kilobyte.
 */
export const MAX_MMDB_STEPS = 40_000_000;

/** Values in one record of an MMDB source. A record of a city has about 150 in 8 languages. */
export const MAX_MMDB_VALUES = 5_000;

// Gates

/** What a gate allows: a number, or one that grows with the days that the data had to change. */
export type GateLimit = number | { base: number; perDay: number };

/**
 * What the gates between verify and publish allow from one night to the next. `gates` in sources.json overrides each limit.
 *
 * The limits were measured on two series of dated copies of one database of the world, 175 copies over six years
 * (truth/gates.js): about 0.0075 % of the IPv4 addresses get another country each day. Of the 145 steps of up to 28 days, six
 * are above a limit.
 */
export const DEFAULT_GATES = {
  /** Share of the IPv4 addresses with a country that may change to another country. */
  maxChangedShareIPv4: { base: 0.003, perDay: 0.00015 },
  /** Share of the IPv6 /48s with a country that may change to another country. */
  maxChangedShareIPv6: { base: 0.004, perDay: 0.00015 },
  /** Share of the IPv6 delegations that may change to another country; of one that changes in part, that part counts. */
  maxChangedDelegationsIPv6: { base: 0.0025, perDay: 0.00025 },
  /** Share of the IPv4 addresses with a country that may lose it. */
  maxLostShareIPv4: { base: 0.0003, perDay: 0.000015 },
  /** Share of the IPv6 /48s with a country that may lose it. */
  maxLostShareIPv6: { base: 0.0025, perDay: 0.00015 },
  /** Share of the IPv6 delegations that may lose their country. */
  maxLostDelegationsIPv6: { base: 0.0035, perDay: 0.0003 },
  /** Share of the IPv4 addresses with a country that may change between a member of the European Union and another country. */
  maxEuChangeShareIPv4: { base: 0.0011, perDay: 0.000045 },
  /** Share of the IPv4 addresses with a country that may change from one country to one other. */
  maxPairShareIPv4: { base: 0.00075, perDay: 0.0000375 },
  /** Share of the IPv4 addresses with a country that one country may lose, or get from others. */
  maxCountryShareIPv4: { base: 0.0012, perDay: 0.000075 },
  /** Share of the IPv6 delegations that one country may lose, or get from others. */
  maxCountryDelegationsIPv6: { base: 0.002, perDay: 0.0001 },
  /** Share of its addresses that one country may lose. If two countries are swapped, both lose all, however small they are. */
  maxCountryLossShare: { base: 0.375, perDay: 0.011 },
  /** Addresses that one country may get from others, as a share of those that it had. */
  maxCountryGainShare: { base: 0.45, perDay: 0.0125 },
  /** Countries that may vanish. The smallest have a few thousand IPv6 /48s, so they do not vanish by chance. */
  maxVanishedCountries: 0,
  /** Longest run of IPv4 addresses that may change as a whole: a /10, four times the largest that was measured. */
  maxBlockIPv4: 4_194_304,
  /** Longest run of IPv6 /48s that may change as a whole: a /19, the largest allocation. */
  maxBlockIPv6: 536_870_912,
  /** Share by which a source's number of rows may grow or shrink. */
  maxRowsChange: 0.2,
  /** Sentinel addresses that may have a wrong country, or lose the right one. */
  maxWrongSentinels: 0,
  /**
   * Share of the IPv4 addresses with a network (an AS number) that may get another one, or lose it. Measured on three dated
   * tables: 0.09 % and 0.04 % in 9 days, 4 % and 1.5 % in 14 months.
   */
  maxChangedNetworksShareIPv4: { base: 0.005, perDay: 0.0003 },
  maxLostNetworksShareIPv4: { base: 0.003, perDay: 0.0002 },
  /** The same of the IPv6 /48s. One network that withdraws a /19 takes a tenth of all that is announced. */
  maxChangedNetworksShareIPv6: { base: 0.005, perDay: 0.0003 },
  maxLostNetworksShareIPv6: { base: 0.15, perDay: 0.0003 },
  /** Share of the networks that may have no addresses any more: 0.2 % in 9 days, 4.6 % in 14 months. */
  maxVanishedNetworksShare: { base: 0.01, perDay: 0.0003 },
  /** Sentinel addresses that may have a wrong AS number: a network may move its addresses to another of its numbers. */
  maxWrongNetworkSentinels: 1,
  /** Share of the rows of labels that may vanish. Off: their owner alone knows them. */
  maxLostLabelRowsShare: 1,
} satisfies Record<string, GateLimit>;

/** The name of a gate: that of its limit. */
export type GateName = keyof typeof DEFAULT_GATES;

/**
 * What the gates allow if a release does not follow from one night to the next: its sources are others, or it is compared
 * with the data that come with the package. Gates that are missing here do not apply. The reference: the data of the package
 * and two other databases (GeoLite2, DB-IP) have different countries for 2.4 % and 5.9 % of the IPv4 addresses.
 */
export const SOURCE_CHANGE_GATES: Partial<Record<GateName, number>> = {
  maxChangedShareIPv4: 0.1,
  maxLostShareIPv4: 0.1,
  maxChangedShareIPv6: 0.1,
  maxLostShareIPv6: 0.1,
  maxCountryLossShare: 0.5,
  maxVanishedCountries: 0,
  maxWrongSentinels: 0,
  maxChangedNetworksShareIPv4: 0.15,
  maxLostNetworksShareIPv4: 0.15,
  maxChangedNetworksShareIPv6: 0.15,
  maxLostNetworksShareIPv6: 0.3,
  maxVanishedNetworksShare: 0.2,
  maxWrongNetworkSentinels: 1,
  maxLostLabelRowsShare: 1,
};

// Releases

/** Releases kept after a new one is published, the current one included. */
export const KEPT_RELEASES = 5;

/** Days of its own publications whose answers a data directory keeps. `--history-days` overrides it. */
export const HISTORY_DAYS = 730;

/** Refused releases kept for inspection. Each takes about 30 MB, and the last few nights show the problem. */
export const KEPT_REFUSED = 3;

/** Age of the data in days above which a warning is given. Country sources appear at least monthly. */
export const DEFAULT_MAX_AGE_DAYS = 35;

/** Pairs of countries in a table of changes: as many as fit on a screen. */
export const PAIRS_SHOWN = 10;

/** Countries in a table of a report: as many as a reader looks at. */
export const COUNTRIES_SHOWN = 25;

/** Blocks listed below a table of changes. */
export const BLOCKS_SHOWN = 5;

// Schedules

/**
 * Default limit of the random delay of a scheduled build or pull, in seconds. As long as the usual time between two pulls, so that
 * 10,000 nodes ask an origin evenly (`bench/fleet.js`), and not all within seconds.
 */
export const SCHEDULE_JITTER_S = 300;

// Signed repositories

/**
 * Days for which the signatures of each role are valid. The timestamp is signed again by a cron job, at least daily; the
 * keys of root are offline, so it is signed by a person.
 */
export const SIGNATURE_DAYS = { root: 365, targets: 90, snapshot: 7, timestamp: 2 };

/** Share of its lifetime in which metadata is signed again before it expires. */
export const SIGNATURE_RENEW_SHARE = 0.25;

/** Releases that a repository offers, the current one included. */
export const REPOSITORY_RELEASES = 5;

/** Largest metadata file of a repository in bytes (256 KiB). One with five releases and ten keys has about 7 kB. */
export const MAX_METADATA_BYTES = 262_144;

/** Largest timestamp in bytes: it names one file. */
export const MAX_TIMESTAMP_BYTES = 16_384;

/** Versions of the root metadata that one pull follows; the next pull follows further ones. */
export const MAX_ROOT_VERSIONS = 64;

/** Longest time in milliseconds that one try of a metadata file may take: a server may send it byte by byte. */
export const METADATA_TRY_TIMEOUT_MS = 30_000;

/** Longest time in milliseconds that one try of a release's file may take; the next try continues it. */
export const PULL_TRY_TIMEOUT_MS = 600_000;

// Compact form

/** Largest size in bytes that a compact form may unpack to (64 MiB); that of the whole world has 2 MB. */
export const MAX_COMPACT_BYTES = 67_108_864;

// Enrichment

/** Fields in one enrichment: more than anyone uses, and small enough for the kernel's tables. */
export const MAX_FIELDS = 64;

/** Steps in the path of one field. */
export const MAX_PATH_KEYS = 64;

/** Greatest index of an element in a path. */
export const MAX_ARRAY_INDEX = 999_999;

/** Longest text in bytes in which addresses are searched with `--lenient`: a list of some hundred addresses. */
export const MAX_LENIENT_BYTES = 8192;

/** Longest text in bytes in which addresses are searched with `--in-text`: a message with a stack trace or the body of a request. */
export const MAX_SEARCHED_BYTES = 1_048_576;

/** Bytes in one key of a path. */
export const MAX_KEY_BYTES = 1024;

/** Longest line of text in bytes if each address gets its result in its place: a result may have a hundred times its bytes. */
export const MAX_INLINE_BYTES = 1_048_576;

/**
 * Longest JSON line in bytes (16 MiB). A longer one counts as invalid and is passed on in pieces, so that memory stays
 * bounded: the engine holds up to twice this size.
 */
export const MAX_LINE_BYTES = 16_777_216;

/** Levels of nesting in a JSON line. A line with more counts as invalid. */
export const MAX_JSON_DEPTH = 1_000_000;

/** Longest CSV record in bytes (4 MiB). A longer one is a quote that was never closed. */
export const MAX_CSV_RECORD_BYTES = 4_194_304;

/** Longest item or single value of a JSON document in bytes (64 MiB): it must fit in memory. */
export const MAX_JSON_ITEM_BYTES = 67_108_864;

/** Bytes that an enricher processes at a time in the thread of its caller: fits a core's cache. */
export const ENRICH_CHUNK_BYTES = 262_144;

/**
 * Bytes that a thread of the line engine processes at a time. With smaller chunks, threads wait for each other more often, and V8
 * spends more time on optimizing the code that handles chunks than the kernel needs for a short input.
 */
export const LINE_CHUNK_BYTES = 524_288;

/** Most worker threads of one enrichment: each takes about 6 MB of the kernel's 2 GiB. */
export const MAX_JOBS = 256;

/** Most threads with chunks of `LINE_CHUNK_BYTES`: each takes about 9 MB. More threads have chunks of `ENRICH_CHUNK_BYTES`. */
export const MAX_LARGE_CHUNK_JOBS = 128;

// API: requests

/** Past days that a server holds open for `?at=`. Each takes some 12 MB, and some tenths of a second to open. */
export const MAX_OPEN_DAYS = 4;

/** What the history of an address, or a past day that is not open, counts against a rate at least, in addresses. */
export const HISTORY_COST = 1_000;

/** Questions about the history that a process keeps: a thread takes some tenths of a second for each. */
export const MAX_HISTORY_QUESTIONS = 32;

/** Those of one key or visitor: the rest is for others. */
export const MAX_HISTORY_QUESTIONS_OF_ONE = 8;

/** Seconds after which a client that was refused may ask the history again. */
export const HISTORY_RETRY_S = 2;

/** Addresses in one batch request; the wire contract fixes this number. */
export const MAX_BATCH = 1_000;

/** Longest request body in bytes: a thousand addresses take at most 48 kB, and the rest is room for white space. */
export const MAX_BODY_BYTES = 262_144;

/** Longest request line and headers together, in bytes: Node's default, repeated here because answers name it. */
export const MAX_HEADER_BYTES = 16_384;

/** Time in milliseconds in which a client must send the headers: against clients that send slowly. */
export const HEADERS_TIMEOUT_MS = 10_000;

/** Time in milliseconds in which a client must send the whole request. */
export const REQUEST_TIMEOUT_MS = 20_000;

/** Time in milliseconds after which a connection without traffic is closed while a response is written. */
export const SOCKET_TIMEOUT_MS = 30_000;

/**
 * Time in milliseconds that an idle connection stays open between two requests. Common load balancers close idle
 * connections after 60 s; they should be the first to close.
 */
export const KEEP_ALIVE_TIMEOUT_MS = 65_000;

/**
 * Time in milliseconds after which a connection is closed on which something that is not a request was answered, even if
 * the client goes on sending.
 */
export const REFUSED_CONNECTION_MS = 1_500;

// API: shutdown, in the order of its phases

/** Time in milliseconds in which `/readyz` fails and requests are still accepted, so that load balancers notice. */
export const PREDRAIN_MS = 500;

/**
 * Time in milliseconds in which open connections may still send a request and new connections are refused. A client on a
 * busy machine may take some hundred milliseconds from one response to its next request.
 */
export const DRAIN_GRACE_MS = 1_000;

/** Longest wait in milliseconds for the requests that are still being processed. */
export const DRAIN_TIMEOUT_MS = 10_000;

// API: current release and keys

/** How often the current release is checked, in milliseconds; a new one is promised within 2 s. */
export const RELEASE_POLL_MS = 500;

/** How often the keys are checked, in milliseconds; a change is promised within 1 s. */
export const KEYS_POLL_MS = 250;

/** Keys that a server remembers, of those that requests had since the keys changed; about 200 bytes each. */
export const KEY_CACHE_SIZE = 20_000;

/** First wait in milliseconds before a current release that could not be used is tried again; it doubles each time. */
export const RELEASE_RETRY_MS = 1_000;

/** First wait in milliseconds before a worker process is replaced or told again what it could not do; it doubles. */
export const WORKER_RETRY_MS = 500;

/** Longest of these waits in milliseconds. To verify a release takes most of a second of computing. */
export const RETRY_MAX_MS = 60_000;

/** How often a worker process says that it is alive, in milliseconds. */
export const WORKER_HEARTBEAT_MS = 1_000;

/** Heartbeats in a row without which a worker is killed and replaced: to open a release blocks one for a second or two. */
export const WORKER_MISSED_HEARTBEATS = 10;

/** Longest wait for the metrics of a worker, in milliseconds: Prometheus gives up after ten seconds by default. */
export const WORKER_METRICS_MS = 3_000;

/** Largest file of keys in bytes (64 MiB): some 400,000 keys. */
export const MAX_KEY_FILE_BYTES = 67_108_864;

/** Longest time in milliseconds to fetch a file of keys. */
export const KEY_FILE_TIMEOUT_MS = 20_000;

// API: rate limit

/** Length of a window of the rate limit in milliseconds: rates are in addresses a minute. */
export const RATE_WINDOW_MS = 60_000;

/** Addresses a minute for a key without a rate of its own: stops a runaway client, but not a bulk user. */
export const DEFAULT_RATE = 1_000_000;

/** Share of a key's rate that a process reserves at once in a count that it shares, to avoid a message for each request. */
export const RATE_RESERVED_SHARE = 0.001;

/**
 * Longest wait for an answer of Redis about a rate, in milliseconds. Redis needs less than one; a request that waited
 * longer would be slower than its lookup is worth.
 */
export const RATE_STORE_TIMEOUT_MS = 50;

/** How often a server checks that Redis answers, and tells the others that it runs, in milliseconds. */
export const RATE_STORE_CHECK_MS = 1_000;

/** Longest wait between two attempts to connect to Redis, in milliseconds. */
export const RATE_STORE_RECONNECT_MS = 500;

/** Time in milliseconds after which a server that reports nothing has no share of the rates any more. */
export const RATE_SERVER_EXPIRES_MS = 10_000;

// API: the page and sign-up

/** Addresses a minute that one visitor of the page can look up: the largest batch of the page, and some more. */
export const PAGE_RATE = 120_000;

/** Addresses in one batch that the page sends to the server: what a visitor can look up in a minute. */
export const MAX_PAGE_BATCH = 100_000;

/** Addresses in one batch that the page looks up in the browser: some 150 MB of memory there. */
export const MAX_BROWSER_BATCH = 5_000_000;

/** How long a key of the page is valid, in milliseconds (10 minutes). The page gets another one when it needs it. */
export const PAGE_KEY_MS = 600_000;

/** Addresses a minute for a key that its holder made by signing up, unless the server's rate is lower. */
export const SIGN_UP_RATE = 60_000;

/** How long a key is valid that its holder made by signing up, in milliseconds (90 days). */
export const SELF_ISSUED_KEY_MS = 7_776_000_000;

/**
 * Keys that can be made in the time of {@link SIGN_UP_WINDOW_MS}, by the bits of an IPv6 network; an IPv4 address counts as
 * a /64. A /56 and a /48 are what providers give to one customer (RFC 6177).
 */
export const SIGN_UPS_PER_NETWORK = { 64: 5, 56: 15, 48: 50 };

/** How long a made key counts against these limits, in milliseconds (one hour). */
export const SIGN_UP_WINDOW_MS = 3_600_000;

// Streams (NATS JetStream)

/** Messages that one worker has in flight: hides the round trips of messages of one line. */
export const STREAM_MESSAGES_IN_FLIGHT = 512;

/** Bytes of input, and of output, that one worker has in flight; more if the broker's messages can be large. */
export const STREAM_BYTES_IN_FLIGHT = 8_388_608;

/**
 * Bytes of memory that one worker keeps for the outputs of later messages: as much as outputs usually have that wait to be
 * stored, so that none is allocated while messages have about the same size.
 */
export const ENRICH_SPARE_BYTES = 16_777_216;

/** At least so many of the broker's largest messages are in flight: there is room for one while half is occupied. */
export const STREAM_LARGEST_IN_FLIGHT = 3;

/** Messages in flight over all workers of a consumer, as `--init` sets it: 32 workers at their limit. */
export const STREAM_MAX_ACK_PENDING = 16_384;

/** Default time in seconds after which an unacknowledged message is delivered again: far above one message's time. */
export const STREAM_ACK_WAIT_S = 30;

/** Default size in bytes of a stream that `--init` creates (10 GiB). The broker reserves this space. */
export const STREAM_MAX_BYTES = 10_737_418_240;

/** How long one request for messages stays open, in milliseconds; also how long a worker takes to notice a stop. */
export const STREAM_PULL_MS = 1_000;

/** The same for a worker that ends with the stream, which then ends sooner. */
export const STREAM_ONCE_PULL_MS = 200;

/** How long a consumer must be missing before a worker gives up, in milliseconds: servers may say so while they start. */
export const STREAM_GONE_MS = 5_000;

/** How long to wait for the broker's answer to one request, or in the handshake of a connection, in milliseconds. */
export const STREAM_REQUEST_TIMEOUT_MS = 5_000;

/** How long to wait for the broker when a command starts, in milliseconds. */
export const STREAM_CONNECT_TIMEOUT_MS = 10_000;

/** First wait before a failed step is tried again, in milliseconds. Each later wait is twice as long. */
export const STREAM_RETRY_MS = 50;

/** Longest wait before a failed step is tried again, in milliseconds. */
export const STREAM_RETRY_MAX_MS = 2_000;

/** Bytes of input that a worker enriches before it serves its connection: a tenth of a millisecond of work. */
export const STREAM_TURN_BYTES = 131_072;

/** How often a standby of an ordered output looks whether the active worker has written more, in milliseconds. */
export const STREAM_STANDBY_POLL_MS = 500;

/** A standby takes over after one to two times this time without progress, in milliseconds. */
export const STREAM_STANDBY_MS = 3_000;

/** How long the server keeps the consumer of an ordered worker that does not ask for messages, in milliseconds. */
export const STREAM_READER_IDLE_MS = 60_000;

/** Bytes of a published message that are kept free for its headers: two names of at most 255 bytes, numbers, a reason. */
export const STREAM_HEADER_BYTES = 2_048;

/** Messages that the reader requests ahead of the one that it writes. */
export const STREAM_READ_AHEAD = 16;

/** Most subjects of an output that the reader searches for the first message, if the source does not hold it any more. */
export const STREAM_READ_SUBJECTS = 1_000_000;

/** How often the reader looks again for an output that is not there yet, in milliseconds. */
export const STREAM_READ_POLL_MS = 250;

// Streams (Kafka)

/**
 * Time in milliseconds for an answer of a broker, and for a transaction: records of a worker that is killed in the middle of one
 * wait so long. transaction.max.timeout.ms of the brokers must allow it.
 */
export const KAFKA_REQUEST_TIMEOUT_MS = 10_000;

/** How long a worker may be silent before the group gives its partitions to others, in milliseconds. */
export const KAFKA_SESSION_MS = 10_000;

/** How often a worker tells the group that it is there, in milliseconds. */
export const KAFKA_HEARTBEAT_MS = 2_000;

/** How long the members of a group have to join again when its partitions are divided anew, in milliseconds. */
export const KAFKA_REBALANCE_MS = 30_000;

/** How long a broker may wait for records before it answers, in milliseconds; also how long a worker takes to notice a stop. */
export const KAFKA_FETCH_MS = 500;

/** Bytes of input that one worker has in flight. */
export const KAFKA_BYTES_IN_FLIGHT = 16_777_216;

/** Most records of a transaction: it has some ten requests, which must not be what takes most of the time. */
export const KAFKA_RECORDS_A_TRANSACTION = 20_000;
