/**
 * The interface between the kernel and its host: offsets, sizes and codes of everything that both read in the kernel's memory.
 *
 * Two compilers read this file, tsc for the host and asc for the kernel (assembly/), so it holds numeric constants only.
 * Offsets and sizes are in bytes. All numbers in memory are little-endian; where no size is given they have 4 bytes.
 * README.md shows the memory as a whole.
 */

/** Bytes by which the kernel may read or write past the end of an area: two blocks of 64. */
export const SLACK_BYTES = 128;

/** Values from which on a batch is looked up: enough for the lookups to wait for memory together. */
export const BATCH_VALUES = 64;

/** Bytes that the flat-object path scans at a time, a multiple of 64: few enough to stay in the fastest cache. */
export const FLAT_CHUNK_BYTES = 4096;

/** Most lines that end in one block of 64 bytes: the shortest is `{}` and its newline. A batch may exceed its limit by them. */
export const BLOCK_LINES = 22;

// Configuration: written once, before the first kernel starts, and then only read.

/** IPv4 start addresses. The kernel keeps their last 16 bits, 2 bytes each. */
export const CONFIG_START4 = 0;
/** Records of the IPv4 ranges, 2 bytes each. */
export const CONFIG_RECORD4 = 4;
/** Index of the IPv4 ranges by the first 16 bits. The kernel makes its bucket table of it. */
export const CONFIG_BUCKETS4 = 8;
/** Room for the buckets that hold several ranges, `CROWDED_BYTES` each. */
export const CONFIG_CROWDED4 = 12;
/** Number of IPv4 ranges. */
export const CONFIG_COUNT4 = 16;
/** Addresses of the levels of IPv6 start addresses, topmost first. */
export const CONFIG_LEVELS6 = 20;
/** Number of those levels. */
export const CONFIG_LEVEL_COUNT6 = 24;
/** Last 64 bits of the IPv6 start addresses, 8 bytes each. */
export const CONFIG_LOW6 = 28;
/** Records of the IPv6 ranges, 2 bytes each. */
export const CONFIG_RECORD6 = 32;
/** Number of IPv6 ranges. */
export const CONFIG_COUNT6 = 36;
/** One `OUTCOME_…` code for each record, 1 byte each. */
export const CONFIG_OUTCOMES = 40;
/** Number of records. */
export const CONFIG_RECORD_COUNT = 44;
/** For each field and each record, then for no result: a text to insert, `FRAGMENT_BYTES` each. */
export const CONFIG_FRAGMENTS = 48;
/** Bytes that the texts inserted into one line have at most. */
export const CONFIG_LONGEST_INSERT = 52;
/** For each field, the target of its path in the key tree. */
export const CONFIG_FIELD_TARGETS = 56;
/** Number of fields. */
export const CONFIG_FIELD_COUNT = 60;
/** The key tree. */
export const CONFIG_KEY_TREE = 64;
/** Number of targets in the key tree. */
export const CONFIG_TARGET_COUNT = 68;
/** Length of the longest key in the key tree. */
export const CONFIG_LONGEST_KEY = 72;
/** What happens to an invalid line: a `POLICY_…` code. */
export const CONFIG_POLICY = 76;
/** 1 if invalid lines are also copied to the rejects. */
export const CONFIG_KEEPS_REJECTS = 80;
/** The digit arrangements of dotted-decimal addresses, `IPV4_FORM_BYTES` each. */
export const CONFIG_IPV4_FORMS = 84;
/** Set to 1 by the kernel that has made the lookup tables. */
export const CONFIG_TABLES_MADE = 88;
/** 8 bytes: the lengths of all keys in the key tree; bit n means n bytes. */
export const CONFIG_KEY_LENGTHS = 96;
/** 1 if some keys in the tree are longer than `KEY_LENGTHS_MAX`: then the kernel compares every key. */
export const CONFIG_COMPARES_ALL_KEYS = 104;
/** Levels of nesting that are followed (MAX_JSON_DEPTH). */
export const CONFIG_MAX_DEPTH = 108;
/** Longest address text (MAX_ADDRESS_LENGTH). */
export const CONFIG_MAX_ADDRESS_LENGTH = 112;
/**
 * For a query in place of enrichment: for each record, then for no address and for a missing value, 1 byte that is 1 if the
 * query selects it. 0 to enrich.
 */
export const CONFIG_SELECTED = 116;
/** 1 if a query passes on the lines that it does not select, and those without an address. */
export const CONFIG_PASSES_OTHERS = 120;
/** 1 if the flat-object path can find the keys: all have at most `FLAT_KEY_MAX` bytes, and none contains a quote. */
export const CONFIG_TRIES_FLAT_PATH = 124;
/** What the input is: a `FORMAT_…` code. */
export const CONFIG_FORMAT = 128;
/** The byte between two cells of a table. */
export const CONFIG_DELIMITER = 132;
/** The shape of the table, see `SHAPE_…`. It is written when the header is known, before the first block is processed. */
export const CONFIG_SHAPE = 136;
/** For each field, the steps of its path from the first array on: their address, their number. `STEPS_BYTES` each. */
export const CONFIG_FIELD_STEPS = 140;
/** 1 if a field has such steps. */
export const CONFIG_HAS_STEPS = 144;
/** For each field, the keys of its target: the address of their steps, their number. `STEPS_BYTES` each. */
export const CONFIG_FIELD_RESULT_KEYS = 148;
/** 1 if a result goes into an object inside the line. */
export const CONFIG_HAS_INNER_RESULTS = 152;
/** 1 if addresses in other text are found, too. */
export const CONFIG_LENIENT = 156;
/** Longest text in which they are searched (MAX_LENIENT_BYTES). */
export const CONFIG_MAX_LENIENT_BYTES = 160;
export const CONFIG_BYTES = 164;

// The formats that the kernel reads.
export const FORMAT_JSON_LINES = 0;
export const FORMAT_TABLE = 1;
export const FORMAT_LIST = 2;
export const FORMAT_COMBINED = 3;
export const FORMAT_TEXT = 4;
/** The items of an array, made lines by items.ts. */
export const FORMAT_JSON_ITEMS = 5;

// The shape of a table. Its targets are the wanted columns, in ascending order.
/** Number of columns. */
export const SHAPE_COLUMNS = 0;
/** Number of targets. */
export const SHAPE_TARGET_COUNT = 4;
/** The column of each target, 4 bytes each. */
export const SHAPE_TARGETS = 8;

/** Longest key in bytes that the kernel recognizes by its length: its quotes are in one block of 64 bytes or in adjacent ones. */
export const KEY_LENGTHS_MAX = 62;

/** Longest key in bytes whose opening quote is in the same block of 64 bytes as its colon, or in the block before. */
export const FLAT_KEY_MAX = 61;

/** A bucket with several ranges: the first range, the number of ranges. */
export const CROWDED_BYTES = 8;
/** A text to insert: its address, its length. */
export const FRAGMENT_BYTES = 8;
/** Keys in a group of an IPv6 level, which is one cache line of 64 bytes. */
export const LEVEL_FAN_OUT = 8;

// What an address of a record counts as, or the scheme by which it embeds an IPv4 address.
export const OUTCOME_COUNTRY = 0;
export const OUTCOME_NO_COUNTRY = 1;
export const OUTCOME_6TO4 = 2;
export const OUTCOME_NAT64 = 3;
export const OUTCOME_TEREDO = 4;

// What happens to a line that is not a JSON object.
export const POLICY_KEEP = 0;
export const POLICY_DROP = 1;
export const POLICY_FAIL = 2;

// A digit arrangement of a dotted-decimal address, see ipv4-forms.ts: 16 source positions, four least values of 2 bytes.
export const IPV4_FORM_LEAST = 16;
export const IPV4_FORM_BYTES = 32;

// A list of steps: its address, the number of steps.
export const STEPS_BYTES = 8;

// A step of a path: what it is, its index or the address of its key, the length of its key.
export const STEP_KIND = 0;
export const STEP_VALUE = 4;
export const STEP_KEY_LENGTH = 8;
export const STEP_BYTES = 12;
export const STEP_IS_KEY = 0;
export const STEP_IS_INDEX = 1;
/** Each element, until one has an address with a country. */
export const STEP_IS_EACH = 2;

// A node of the key tree, see key-tree.ts.
/** Address of the edges to its children. */
export const NODE_EDGES = 0;
/** Number of its children. */
export const NODE_CHILD_COUNT = 4;
/** First target at or below the node. */
export const NODE_FIRST_TARGET = 8;
/** End of the targets at or below the node. */
export const NODE_TARGETS_END = 12;
/** 1 if the node is a target itself; then it is the first one. */
export const NODE_IS_TARGET = 16;
/** 1 if the node is a top-level key that a result is written to. */
export const NODE_IS_RESULT = 20;
export const NODE_BYTES = 24;

// An edge of the key tree.
/** 8 bytes: the end of the key with the quote before it, padded with zeros at the front. */
export const EDGE_TAIL = 0;
/** 8 bytes: the bits of `EDGE_TAIL` that are compared. */
export const EDGE_TAIL_MASK = 8;
/** Address of the key. */
export const EDGE_KEY = 16;
/** 2 bytes: length of the key. */
export const EDGE_KEY_LENGTH = 20;
/** 2 bytes: number of the child. */
export const EDGE_CHILD = 22;
export const EDGE_BYTES = 24;

// Working areas of a thread.
/** For each target, the colon before its value in the current line, or 0. */
export const AREAS_VALUE_OFFSETS = 0;
/** Room for one key or address without its escapes. */
export const AREAS_SCRATCH = 4;
/** Room for the open objects and arrays, 2 bytes each. */
export const AREAS_STACK = 8;
/** Room for the values of an address's digits. */
export const AREAS_DIGITS = 12;
/** Room for the lines of a batch, `LINE_BYTES` each. */
export const AREAS_LINES = 16;
/** Room for the values of a batch: first their offsets, then their records. */
export const AREAS_VALUES = 20;
/** Room for the IPv4 queries of a batch, `QUERY4_BYTES` each. */
export const AREAS_QUERIES4 = 24;
/** Room for the IPv6 queries of a batch, `QUERY6_BYTES` each. */
export const AREAS_QUERIES6 = 28;
/** For a query: the number of addresses found for each record, 8 bytes each. The kernel never resets them. */
export const AREAS_RECORD_COUNTS = 32;
/** Room for the events of `FLAT_CHUNK_BYTES`, 4 bytes each. */
export const AREAS_EVENTS = 36;
/** Room for the record of a single query, 4 bytes. */
export const AREAS_SINGLE = 40;
/** Room for the last member of each field at each depth, 4 bytes each. */
export const AREAS_LAST_MEMBERS = 44;
/** Room for the entries of the template of a line, `TEMPLATE_ENTRY_BYTES` each. */
export const AREAS_TEMPLATE = 48;
export const AREAS_BYTES = 52;

/** Most entries of a template; a line with more has none. */
export const TEMPLATE_ENTRIES = 256;
// An entry of a template: its text and the mask of its bytes, 16 bytes each.
export const TEMPLATE_TEXT = 0;
export const TEMPLATE_MASK = 16;
/** Bytes of the text, and what follows it. */
export const TEMPLATE_LENGTH = 32;
export const TEMPLATE_KIND = 36;
/** The address that receives the colon of the wanted value in the text, and the distance from it to the end of the text. */
export const TEMPLATE_OFFSET_SLOT = 40;
export const TEMPLATE_VALUE_DISTANCE = 44;
export const TEMPLATE_ENTRY_BYTES = 48;

export const LINE_BYTES = 24;
/** A row of a table or a list, in the room for a line. */
export const ROW_BYTES = 12;
export const QUERY4_BYTES = 16;
export const QUERY6_BYTES = 24;

// The header of a slot.
/** In and out: the first byte of input that has not been copied to the output. */
export const SLOT_COPIED = 0;
/** In and out: the first line that has not been processed. */
export const SLOT_NEXT = 4;
/** In: the end of the input. */
export const SLOT_INPUT_END = 8;
/** In and out: the next byte of output. */
export const SLOT_OUTPUT = 12;
/** In: the end of the room for output. */
export const SLOT_OUTPUT_END = 16;
/** In and out: the next byte of rejected lines. */
export const SLOT_REJECTS = 20;
/** Out: lines processed in the last run, of all kinds. */
export const SLOT_LINES = 24;
/** Out: values of the last run by result: country, no country, not an address, missing. */
export const SLOT_FOUND = 28;
export const SLOT_NO_COUNTRY = 32;
export const SLOT_INVALID_ADDRESS = 36;
export const SLOT_MISSING_FIELD = 40;
/** Out: invalid lines of the last run. */
export const SLOT_INVALID_LINE = 44;
/** Out: 1 if the run stopped at an invalid line because of `POLICY_FAIL`. */
export const SLOT_FAILED = 48;
/** Out: the number of cells of the record at which the run stopped because of `POLICY_FAIL`. */
export const SLOT_CELLS = 52;
export const SLOT_BYTES = 56;
