/**
 * The interface between the kernel and its host: offsets, sizes and codes of everything that both read in the kernel's memory.
 *
 * Two compilers read this file, tsc for the host and asc for the kernel (assembly/), so it holds numeric constants only.
 * Offsets and sizes are in bytes. All numbers in memory are little-endian; where no size is given they have 4 bytes.
 * Settings, which are numbers of their own, are in assembly/settings.ts. README.md shows the memory as a whole.
 */

/** Bytes by which the kernel may read or write past the end of an area: two vectors of 64. */
export const SLACK_BYTES = 128;

/** Values from which on a batch is looked up: enough for the lookups to wait for memory together. */
export const BATCH_VALUES = 64;
/** The same if their addresses are encrypted: one call encrypts those of a batch. */
export const CIPHER_VALUES = 512;

/** Most lines of objects that end in one vector of 64 bytes: the shortest is `{}` and its newline. A batch may exceed its limit by them. */
export const VECTOR_LINES = 22;

/** Candidates for values that are looked up together: those of `[]` in a path, and addresses in text. */
export const CANDIDATES = 256;
/** Addresses of a line of text that are kept until its best role is known. */
export const FOUND = 32;
/** A candidate: its record, the address of its value. */
export const CANDIDATE_BYTES = 8;

// The formats that the kernel reads.
export const FORMAT_JSON = 0;
export const FORMAT_TABLE = 1;
export const FORMAT_LIST = 2;
export const FORMAT_COMBINED = 3;
export const FORMAT_TEXT = 4;
export const FORMAT_PAIRS = 5;

/** The byte that ends an item of a JSON document: a control character, which JSON does not allow anywhere. */
export const ITEM_END = 30;

/** Longest white space before the first member of an object in a document that is repeated before each result. */
export const LONGEST_INDENT = 64;

// The shape of a table, which is written when the header is known. Its targets are the wanted columns, in ascending order.
/** Number of columns; 0 if the header is not known, so that no record is valid; `ANY_COLUMNS` if records may differ. */
export const SHAPE_COLUMNS = 0;
/** The delimiter, and the number of its style: see `inserts` in assembly/settings.ts. */
export const SHAPE_DELIMITER = 4;
export const SHAPE_STYLE = 8;
/** The number of the style of records that have tabs in place of the delimiter, or `NO_TABS` if none have. */
export const SHAPE_TAB_STYLE = 12;
export const NO_TABS = 0xffff_ffff;
/** Number of targets. */
export const SHAPE_TARGET_COUNT = 16;
/** The column of each target, 4 bytes each; `NO_COLUMN` for a field without a column. */
export const SHAPE_TARGETS = 20;
/** Above every column. */
export const NO_COLUMN = 0xffff_ffff;
export const ANY_COLUMNS = 0xffff_ffff;

// Where a quotation in a table ends: at a quote only, or also at the end of the line. Or quotes are text.
export const QUOTES_RECORD = 0;
export const QUOTES_LINE = 1;
export const QUOTES_NONE = 2;

/** Longest key in bytes that the kernel recognizes by its length: its quotes are in one vector or in adjacent ones. */
export const KEY_LENGTHS_MAX = 62;

/** A bucket with several ranges: the first range, the number of ranges. */
export const CROWDED_BYTES = 8;
/** A text: its address, its length. */
export const TEXT_BYTES = 8;

// What is inserted for a field: texts of the record, and between them what depends on the address.
/** Address of the texts: for each record, then for no result, one before each gap and one after the last. */
export const INSERT_TEXTS = 0;
/** Number of gaps, and the address of the first. No result has its first text only. */
export const INSERT_GAP_COUNT = 4;
export const INSERT_GAPS = 8;
export const INSERT_BYTES = 12;

// A gap: what fills it, and the address of three texts: before that, after it, and in place of all three if there is nothing.
export const GAP_KIND = 0;
export const GAP_TEXTS = 4;
/** The networks, `NETWORK_BYTES` each, if it is filled with something of a network. */
export const GAP_NETWORKS = 8;
export const GAP_BYTES = 12;
/** The text of the address. */
export const GAP_ADDRESS = 0;
/** The block around the address within which everything that was asked for is the same. */
export const GAP_BLOCK = 1;
/** The day whose answers hold, as `DATE_BYTES`. */
export const GAP_DATE = 2;
/** The AS number of the network of the address, and its name. */
export const GAP_ASN = 3;
export const GAP_NAME = 4;
export const DATE_BYTES = 10;

// A network: its AS number, 0 for none; the address and length of its name as the format writes it.
export const NETWORK_ASN = 0;
export const NETWORK_NAME = 4;
export const NETWORK_NAME_LENGTH = 8;
export const NETWORK_BYTES = 12;

// A partition of a family from which rows are made.
/** Number of ranges. */
export const PARTITION_COUNT = 0;
/** Addresses of the first and last halves of their start addresses, 8 bytes each; of IPv4, the start addresses, 4 bytes each, and 0. */
export const PARTITION_HIGHS = 4;
export const PARTITION_LOWS = 8;
/** Address of their records, and bytes of each: 2 or 4. */
export const PARTITION_RECORDS = 12;
export const PARTITION_RECORD_BYTES = 16;
/** For each record, the number of what it answers, 4 bytes each: ranges with the same answers are in one block. 0 if blocks are not asked for. */
export const PARTITION_ANSWERS = 20;
/** The range at which the kernel is. */
export const PARTITION_RANGE = 24;
export const PARTITION_BYTES = 28;

// A row: what is known of a range if networks or blocks are asked for. First its record in each partition, in their order.
/** The record of the country; with history, the timeline. */
export const ROW_RECORD = 0;
/** The network, or what a query counts by. */
export const ROW_NETWORK = 4;
/**
 * Where the ranges begin within which everything that was asked for is the same as in this one, and where the next ones begin: IPv4
 * addresses, or the numbers of IPv6 ranges; 0 if none are next.
 */
export const ROW_BLOCK = 8;
export const ROW_BLOCK_END = 12;
export const ROW_BYTES = 16;

// What is kept of an address: its text, its length, and the address.
export const KEPT_LENGTH = 48;
export const KEPT_FAMILY = 52;
export const KEPT_HIGH = 56;
export const KEPT_LOW = 64;
/** The state of the history that holds for the line. */
export const KEPT_STATE = 72;
/** The row that decides: that of the embedded IPv4 address, if there is one; the row of the IPv6 address itself. */
export const KEPT_ROW = 76;
export const KEPT_ROW6 = 80;
/** Where its text begins and ends in the input, if addresses are located. */
export const KEPT_FROM = 84;
export const KEPT_TO = 88;
export const KEPT_BYTES = 96;
/** The prefix length of an address without a block. */
export const NO_PREFIX = 255;

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

// Which address counts where a line has several, see `Pick` in ../options.ts.
export const PICK_PUBLIC = 0;
export const PICK_FIRST = 1;
export const PICK_LAST = 2;

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

// A node of the tree of the objects that results go into; the root is the line.
/** Its key; the text that begins it, such as `"geo":{`. Address and length each. */
export const RESULT_KEY = 0;
export const RESULT_KEY_LENGTH = 4;
export const RESULT_TEXT = 8;
export const RESULT_TEXT_LENGTH = 12;
/** Address and number of its children, and of its leaves. */
export const RESULT_CHILDREN = 16;
export const RESULT_CHILD_COUNT = 20;
export const RESULT_LEAVES = 24;
export const RESULT_LEAF_COUNT = 28;
/** 8 bytes: the fields whose results go into it or into objects in it, one bit each. */
export const RESULT_FIELDS = 32;
/** 1 if a line in which it is not an object is not valid. */
export const RESULT_IS_REQUIRED = 40;
export const RESULT_BYTES = 48;

// A leaf: a member that a result replaces; the field, and what is inserted for it in this object, or 0 if another leaf has it.
export const LEAF_KEY = 0;
export const LEAF_KEY_LENGTH = 4;
export const LEAF_FIELD = 8;
export const LEAF_INSERT = 12;
export const LEAF_BYTES = 16;

/** Most entries of all templates; a line with more has none. */
export const TEMPLATE_ENTRIES = 512;
// An entry of a template: its text and the mask of its bytes, 16 bytes each.
export const TEMPLATE_TEXT = 0;
export const TEMPLATE_MASK = 16;
/** Bytes of the text, and what follows it. */
export const TEMPLATE_LENGTH = 32;
export const TEMPLATE_KIND = 36;
/** The address that receives the colon of the wanted value in the text, and the distance from it to the end of the text. */
export const TEMPLATE_OFFSET_SLOT = 40;
export const TEMPLATE_VALUE_DISTANCE = 44;
/** The entry for other lines with the same text before this one, or 0. */
export const TEMPLATE_OTHER = 48;
/** Of the last entry: the distance from the first byte of a line to its opening brace, and from its closing brace to the next line. */
export const TEMPLATE_OPEN_DISTANCE = 52;
export const TEMPLATE_CLOSE_DISTANCE = 56;
/** Of an entry with a value: the length that it is expected to have, or NO_LENGTH; the line in which it had another one last. */
export const TEMPLATE_EXPECTED = 52;
export const TEMPLATE_SURPRISE = 56;
export const NO_LENGTH = 0xffff_ffff;
export const TEMPLATE_ENTRY_BYTES = 64;

export const LINE_BYTES = 24;
export const QUERY4_BYTES = 20;
export const QUERY6_BYTES = 28;

/** The states of days that are not kept, and of those whose history is damaged, see src/history/over-time.ts. */
export const NO_STATE = 0xffff;
export const DAMAGED_STATE = 0xfffe;

// What is wrong with a line: it is not a record of the format, or has another value than an object where results go.
export const NOT_A_RECORD = 1;
export const OBJECT_MISSING = 2;

// How addresses are hidden.
export const HIDE_DROP = 1;
export const HIDE_TRUNCATE = 2;
export const HIDE_CIPHER = 3;
/** Instead, each address gets its result in its place, or all but the addresses is left out. */
export const HIDE_INLINE = 4;
export const HIDE_EXTRACT = 5;
/** Addresses that get their results together. */
export const INLINE_SPANS = 1024;
/** Spans of input that are hidden together, and the bytes of one. A record with more is text, all of whose addresses are hidden. */
export const SPANS = 16_384;
export const SPAN_BYTES = 32;

// An address of a record, as a run that locates addresses puts it out; a record without one has an entry with an empty text.
/** The first byte of its record, and its text, in the input. */
export const LOCATED_RECORD = 0;
export const LOCATED_FROM = 4;
export const LOCATED_TO = 8;
/** 1 byte each: its role; `LOCATED_…` bits: whether it is looked up; whether the record is not valid. */
export const LOCATED_ROLE = 12;
export const LOCATED_FLAGS = 13;
export const LOCATED_COUNTS = 1;
export const LOCATED_IS_INVALID = 2;
export const LOCATED_BYTES = 16;

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
/** Out: what is wrong with the line at which the run stopped because of `POLICY_FAIL`, or 0. */
export const SLOT_STOPPED_AT_INVALID = 48;
/** Out: the number of cells of the record at which the run stopped because of `POLICY_FAIL`. */
export const SLOT_CELLS = 52;
/** Out: addresses of the last run for whose dates there are no answers. */
export const SLOT_MISSING_DATE = 56;
/** Out: addresses of the last run for whose dates the history is damaged. */
export const SLOT_DAMAGED_HISTORY = 60;
/** Out: addresses that were hidden; records that were searched for other addresses, and that have some. */
export const SLOT_HIDDEN = 64;
export const SLOT_SEARCHED = 68;
export const SLOT_OTHERS = 72;
export const SLOT_BYTES = 76;

// Roles of addresses in text, the best first: the own label of a log, of which the last one in a line counts; versions and masks last.
export const ROLE_OWN = 0;
export const ROLE_CLIENT = 1;
export const ROLE_UNNAMED = 2;
export const ROLE_UNTRUSTED = 3;
export const ROLE_SERVER = 4;
export const ROLE_MACHINE = 5;
export const ROLE_NEVER = 6;
/** Labels whose roles are kept: how many bits their numbers have. */
export const LABEL_BITS = 6;
export const LABEL_BYTES = 128;
/** A name that has a role: its hash, which is not 0, and the role. */
export const NAME_BYTES = 8;
export const NAME_ROLE = 4;
/**
 * A grammar: addresses of lists of texts, each after a byte with its length, with a zero after the last. A line has it if its
 * program has one of the names, or if there are none. After an untrusted text, the last address counts; from a rest on, a client has
 * written the line. Before an address, the texts have a role, in a byte after the length; the own texts are those of the log's own label.
 */
export const GRAMMAR_PROGRAMS = 0;
export const GRAMMAR_UNTRUSTED = 4;
export const GRAMMAR_REST = 8;
export const GRAMMAR_TEXTS = 12;
export const GRAMMAR_OWN = 16;
export const GRAMMAR_BYTES = 20;
