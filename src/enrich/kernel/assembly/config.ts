/**
 * Where things lie in memory, as `../layout.ts` put them. Several threads may run this module over one shared memory: what
 * is named here is written once, before the first of them starts, and only read afterwards.
 */

// The release's columns, see FORMAT.md of the range file; tables.ts makes of them what stands here.
/** The last 16 bits of `4STA`, 2 bytes a range: within a bucket of the index the first 16 are the same. */
export let low4: usize = 0;
export let record4: usize = 0;
/** By an address's first 16 bits, 4 bytes each: the record and `ANSWERED`; or the place in `crowded4` that says which ranges
 * begin there: the first and how many, 4 bytes each. */
export let buckets4: usize = 0;
export let crowded4: usize = 0;
/** Where the levels of IPv6 start addresses lie, the topmost first, 4 bytes each; how many levels, how many ranges. */
export let levels6: usize = 0;
export let levelCount: u32 = 0;
export let count4: u32 = 0;
export let count6: u32 = 0;
export let low6: usize = 0;
export let record6: usize = 0;

/** One byte a record: `FOUND`, `NO_COUNTRY`, or the scheme by which an IPv4 address is embedded. */
export let outcomes: usize = 0;
export let recordCount: u32 = 0;
/** For each field, and in it each record, the text to put in: its address and its length, 4 bytes each. The last of each
 * field, behind the records, is the text for no answer. */
export let fragments: usize = 0;
/** Bytes that the texts of all fields together have at most. */
export let longestInsert: u32 = 0;
/** For each field, 4 bytes: the target that its address stands at. */
export let fieldTargets: usize = 0;
export let fieldCount: u32 = 0;
/** The tree of keys, see keys.ts. */
export let nodes: usize = 0;
export let targetCount: u32 = 0;
/** Lengths of the keys at the top: bit n for n bytes, bit 63 for 63 and more. */
export let keyLengths: u64 = 0;
/** Length of the longest key in bytes. */
export let longestKey: u32 = 0;
/** What happens to a line that is no JSON object. */
export let policy: u32 = 0;
/** Whether such lines are also copied to the slot's rejects. */
export let keepsRejects: bool = false;
/** Levels of nesting that are followed. */
export let maxDepth: u32 = 0;
/** How digits of an IPv4 address are moved, see `../octets.ts`. */
export let octetForms: usize = 0;
/** Answers that wait at a time, at most. */
export let mostAnswers: u32 = 0;

/** See `buckets4`. */
export const ANSWERED: u32 = 0x8000_0000;

export const FOUND: u8 = 0;
export const NO_COUNTRY: u8 = 1;
export const SIX_TO_FOUR: u8 = 2;
export const NAT64: u8 = 3;
export const TEREDO: u8 = 4;

// Policies, by their places among INVALID_POLICIES in ../../options.ts; the one between drops lines.
export const KEEP: u32 = 0;
export const FAIL: u32 = 2;

/**
 * Takes up the configuration.
 *
 * @param at 4-byte numbers in the order of `CONFIG_FIELDS` in `../layout.ts`
 */
export function configure(at: usize): void {
  low4 = load<u32>(at, 0);
  record4 = load<u32>(at, 4);
  buckets4 = load<u32>(at, 8);
  crowded4 = load<u32>(at, 12);
  levels6 = load<u32>(at, 16);
  levelCount = load<u32>(at, 20);
  count4 = load<u32>(at, 24);
  count6 = load<u32>(at, 28);
  low6 = load<u32>(at, 32);
  record6 = load<u32>(at, 36);
  outcomes = load<u32>(at, 40);
  recordCount = load<u32>(at, 44);
  fragments = load<u32>(at, 48);
  longestInsert = load<u32>(at, 52);
  fieldTargets = load<u32>(at, 56);
  fieldCount = load<u32>(at, 60);
  nodes = load<u32>(at, 64);
  keyLengths = load<u64>(nodes);
  targetCount = load<u32>(at, 68);
  longestKey = load<u32>(at, 72);
  policy = load<u32>(at, 76);
  keepsRejects = load<u32>(at, 80) != 0;
  maxDepth = load<u32>(at, 84);
  octetForms = load<u32>(at, 88);
  mostAnswers = load<u32>(at, 92);
}

/** Whether the tables are still to be made; says so once in a memory. */
export function needsTables(at: usize): bool {
  const prepared = load<u32>(at, 96);
  store<u32>(at, 1, 96);
  return prepared == 0;
}
