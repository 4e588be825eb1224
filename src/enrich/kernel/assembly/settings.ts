/**
 * The settings of the kernel. The host writes them by name, as globals of the instance (../layout.ts), before the first run:
 * the same for all threads, except for the working areas at the end. Where no type is given, a setting is an address.
 */

/** IPv4 start addresses, of which the kernel keeps the last 16 bits, 2 bytes each: within a bucket the others are the same. */
export let start4: usize = 0;
/** Records of the IPv4 ranges, 2 bytes each; with history their timelines, 4 bytes each. */
export let record4: usize = 0;
/** For each value of an address's first 16 bits: a record with the `DECIDED` bit, or the number of a crowded bucket. */
export let buckets4: usize = 0;
/** Room for the buckets that hold several ranges, `CROWDED_BYTES` each. */
export let crowded4: usize = 0;
/** Addresses of the levels of IPv6 start addresses, topmost first, and their number. */
export let levels6: usize = 0;
export let levelCount6: u32 = 0;
/** Last 64 bits of the IPv6 start addresses, 8 bytes each; records or timelines of the IPv6 ranges. */
export let low6: usize = 0;
export let record6: usize = 0;
/** Whether the tables of IPv6 are made. The host may read their columns only when they are needed. */
export let hasTables6: bool = false;
/** The numbers of IPv4 and IPv6 ranges, 4 bytes each. */
export let counts: usize = 0;
/** One `OUTCOME_…` code for each record, 1 byte each. */
export let outcomes: usize = 0;
export let recordCount: u32 = 0;
/** Whether the record of a range is all that is needed: there is no history, and there are no rows. */
export let isDirect: bool = false;

/**
 * If each line has the answers of its own date, see src/history/over-time.ts: for each timeline, the number of its first step, 4 bytes
 * each; its steps, 4 bytes each, the record and then the state. 0 without history.
 */
export let timelines: usize = 0;
export let steps: usize = 0;
/** The state of each day, 2 bytes each; the first day, in days since 1970, and their number. */
export let states: usize = 0;
export let firstDay: i32 = 0;
export let dayCount: u32 = 0;
/** The day whose answers hold in each state, `DATE_BYTES` each; without timelines, that of all lines. */
export let dates: usize = 0;
/** The state that holds for a line whose date is missing, no date, or not kept; it can be NO_STATE. */
export let missingState: u32 = 0;

/**
 * If networks or blocks are asked for, room for a row for each IPv4 and IPv6 range, `ROW_BYTES` each, see `ROW_…` in ../abi.ts; or 0.
 * Then the ranges are made together with the rows, so there is only room for them at first.
 */
export let rows4: usize = 0;
export let rows6: usize = 0;
/** The partitions that rows are made of, `PARTITION_BYTES` each; those of IPv6 follow. */
export let partitions4: usize = 0;
export let partitions6: usize = 0;
/** The numbers to 255 in decimal, 4 bytes each: three for the digits, one for how many there are. */
export let decimals: usize = 0;

/**
 * What is inserted for each style and field, `INSERT_BYTES` each, see `INSERT_…` in ../abi.ts. The styles are those of the delimiters
 * that a format can have.
 */
export let inserts: usize = 0;
/** Bytes that the texts inserted into one line have at most. */
export let longestInsert: u32 = 0;

/** What the input is: a `FORMAT_…` code. */
export let format: u32 = 0;
/** The byte that ends a line, and one more byte that is white space in a line: a space if there is none. */
export let terminator: u32 = 0;
export let extraBlank: u32 = 0;
/** Whether the lines are JSON objects one after the other, see objects.ts; then the terminator is not in the input. */
export let isSequence: bool = false;
/** The byte between two cells of a table, a `QUOTES_…` code, and the byte that is the only one of a cell without a value. */
export let delimiter: u32 = 0;
export let quotes: u32 = 0;
export let unset: u32 = 0;

/** Sets the delimiter: the header of a table may come with another one. */
export function setDelimiter(byte: u32): void {
  delimiter = byte;
}

/** The shape of the table, see `SHAPE_…` in ../abi.ts. */
export let shape: usize = 0;

export let fieldCount: u32 = 0;
/** Values from which on a batch is looked up. */
export let batchValues: u32 = 0;
/** The number of values of a line: the fields, with history the date after them, and the other places of fields. */
export let valueCount: u32 = 0;
/** For each value, the target of its path in the key tree, 4 bytes each. */
export let fieldTargets: usize = 0;
/** For each field, the first and the end of the values in which its address is if it is not in its own, 4 bytes each; or 0. */
export let others: usize = 0;
/** For each value, the steps of its path from the first array on, see `STEPS_BYTES` and `STEP_…` in ../abi.ts. */
export let fieldSteps: usize = 0;
export let hasSteps: bool = false;
/**
 * The tree of the objects that results go into, if they do not all go to the top of the line, see `RESULT_…` in ../abi.ts; or 0.
 * Whether objects that a line does not have are created, and whether some are required to be objects if the line has them.
 */
export let results: usize = 0;
export let createsObjects: bool = false;
export let requiresObjects: bool = false;

/** The key tree, see ../key-tree.ts: the number of its targets, the length of its longest key in bytes. */
export let keyTree: usize = 0;
export let targetCount: u32 = 0;
export let longestKey: u32 = 0;
/** The lengths of the keys in the tree, bit n for n bytes; whether some are longer, so that the kernel compares every key. */
export let keyLengths: u64 = 0;
export let comparesAllKeys: bool = false;

/** What happens to an invalid line, a `POLICY_…` code; whether it is also copied to the rejects. */
export let policy: u32 = 0;
export let keepsRejects: bool = false;
/**
 * For a query in place of enrichment: for each record, then for no address, for a missing value and for no answers, 1 byte that is 1 if the
 * query selects it. 0 to enrich.
 */
export let selected: usize = 0;
/** For a query by network: for each network, 1 byte that is 1 if the query selects it; 0 if it counts them. */
export let selectedNetworks: usize = 0;
/** Whether a query passes on the lines that it does not select, and those without an address. */
export let passesOthers: bool = false;

/** Whether a run puts out where the addresses of its records are, `LOCATED_BYTES` each, in place of the records. */
export let locates: bool = false;

/**
 * How addresses are hidden, a `HIDE_…` code; whether those of the whole record are, not only those of its fields; the prefix lengths that
 * truncation leaves; a record's bytes of output for each of its input at most.
 */
export let hides: u32 = 0;
export let hidesAll: bool = false;
export let cut4: u32 = 0;
export let cut6: u32 = 0;
export let growth: u32 = 1;
/** Whether addresses that are extracted come with their lines. */
export let extractsLines: bool = false;
/**
 * What is put in the place of a whole value, of an address in text, and of the last number of an IPv4 address; `TEXT_BYTES` each, and at
 * most 16 bytes long.
 */
export let emptyText: usize = 0;
export let foundText: usize = 0;
export let zeroText: usize = 0;

/** Which address counts where there are several: a `PICK_…` code. */
export let pick: u32 = 0;
/** Whether strings of JSON and cells of tables are free text, in which the address is anywhere. */
export let searchesStrings: bool = false;
/**
 * Whether addresses in text have roles, see roles.ts. The names of labels by their hashes, `NAME_BYTES` each, in a table of which the
 * last number is `roleNamesMask`; the texts of all lines, as one grammar; the grammars of logs, `GRAMMAR_BYTES` each.
 */
export let hasRoles: bool = false;
export let roleNames: usize = 0;
export let roleNamesMask: u32 = 0;
export let generalTexts: usize = 0;
export let grammars: usize = 0;
export let grammarCount: u32 = 0;
/** Whether addresses in other text are found, and the longest such text. */
export let isLenient: bool = false;
export let maxLenientBytes: usize = 0;
export let maxAddressLength: usize = 0;
/** The digit arrangements of dotted-decimal addresses, `IPV4_FORM_BYTES` each. */
export let ipv4Forms: usize = 0;
/** Levels of nesting that are followed. */
export let maxDepth: u32 = 0;

// The working areas of the thread.
/** For each target, the colon before its value in the current line, or 0; 4 bytes each. */
export let valueOffsets: usize = 0;
/** Addresses of a text whose best role is not known yet, `SPAN_BYTES` each. */
export let found: usize = 0;
/** The labels of addresses whose roles are kept, `LABEL_BYTES` each. */
export let labels: usize = 0;
/** Room for one key or address without its escapes. */
export let scratch: usize = 0;
/** The open objects and arrays, 2 bytes each. */
export let stack: usize = 0;
/** The lines of a batch, `LINE_BYTES` each; their values, first the offsets, then the records and the state, 4 bytes each. */
export let lines: usize = 0;
export let values: usize = 0;
/** The candidates for values, `CANDIDATE_BYTES` each. */
export let candidates: usize = 0;
/** What is kept of the addresses of the values, and of the candidates, `KEPT_BYTES` each; 0 if the records say all. */
export let keptOfValues: usize = 0;
export let keptOfCandidates: usize = 0;
/** The queries of a batch, `QUERY4_BYTES` and `QUERY6_BYTES` each. */
export let queries4: usize = 0;
export let queries6: usize = 0;
/** For a query: the number of addresses found for each record, 8 bytes each. The kernel never resets them. */
export let recordCounts: usize = 0;
/** The same for each network; 0 if they are not counted. */
export let networkCounts: usize = 0;
/** A place of 4 bytes that nothing reads. */
export let unread: usize = 0;
/** For each node of `results`, the last member with its key, 4 bytes each. */
export let lastMembers: usize = 0;
/** If addresses are hidden: the spans of some lines, see hide.ts, and room for their addresses, 16 bytes each. */
export let spans: usize = 0;
export let spansLimit: usize = 0;
/** The values of spans whose results are put in their place; they follow those of the lines. */
export let inlineValues: usize = 0;
export let cipherBytes: usize = 0;
/** The entries of the template of a line, `TEMPLATE_ENTRY_BYTES` each. */
export let template: usize = 0;
