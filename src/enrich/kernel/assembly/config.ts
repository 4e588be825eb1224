/**
 * The configuration as the kernel reads it, see `CONFIG_…` in ../abi.ts. Several threads may run this module over one shared
 * memory: the configuration is written before the first of them starts, and only read afterwards.
 */
import {
  CONFIG_BUCKETS4,
  CONFIG_COMPARES_ALL_KEYS,
  CONFIG_COUNT4,
  CONFIG_COUNT6,
  CONFIG_CROWDED4,
  CONFIG_DELIMITER,
  CONFIG_FIELD_COUNT,
  CONFIG_FIELD_RESULT_KEYS,
  CONFIG_FIELD_STEPS,
  CONFIG_FIELD_TARGETS,
  CONFIG_FORMAT,
  CONFIG_FRAGMENTS,
  CONFIG_HAS_INNER_RESULTS,
  CONFIG_HAS_STEPS,
  CONFIG_IPV4_FORMS,
  CONFIG_KEEPS_REJECTS,
  CONFIG_KEY_LENGTHS,
  CONFIG_KEY_TREE,
  CONFIG_LENIENT,
  CONFIG_LEVELS6,
  CONFIG_LEVEL_COUNT6,
  CONFIG_LONGEST_INSERT,
  CONFIG_LONGEST_KEY,
  CONFIG_LOW6,
  CONFIG_MAX_ADDRESS_LENGTH,
  CONFIG_MAX_DEPTH,
  CONFIG_MAX_LENIENT_BYTES,
  CONFIG_OUTCOMES,
  CONFIG_PASSES_OTHERS,
  CONFIG_POLICY,
  CONFIG_RECORD4,
  CONFIG_RECORD6,
  CONFIG_RECORD_COUNT,
  CONFIG_SELECTED,
  CONFIG_SHAPE,
  CONFIG_START4,
  CONFIG_TABLES_MADE,
  CONFIG_TARGET_COUNT,
  CONFIG_TRIES_FLAT_PATH,
  SHAPE_COLUMNS,
  SHAPE_TARGET_COUNT,
  SHAPE_TARGETS,
} from '../abi';

/** Last 16 bits of the IPv4 start addresses, 2 bytes each; within a bucket the first 16 bits are the same. */
export let start4: usize = 0;
export let record4: usize = 0;
/** For each value of an address's first 16 bits: a record with the `DECIDED` bit, or the number of a crowded bucket. */
export let buckets4: usize = 0;
export let crowded4: usize = 0;
export let count4: u32 = 0;
export let levels6: usize = 0;
export let levelCount6: u32 = 0;
export let low6: usize = 0;
export let record6: usize = 0;
export let count6: u32 = 0;
export let outcomes: usize = 0;
export let recordCount: u32 = 0;
export let fragments: usize = 0;
export let longestInsert: u32 = 0;
export let fieldTargets: usize = 0;
export let fieldCount: u32 = 0;
export let keyTree: usize = 0;
export let targetCount: u32 = 0;
export let longestKey: u32 = 0;
/** Lengths of all keys in the tree, see `NODE_KEY_LENGTHS`. */
export let keyLengths: u64 = 0;
export let comparesAllKeys: bool = false;
export let triesFlatPath: bool = false;
export let policy: u32 = 0;
export let keepsRejects: bool = false;
export let ipv4Forms: usize = 0;
export let maxDepth: u32 = 0;
export let selected: usize = 0;
export let passesOthers: bool = false;
export let maxAddressLength: usize = 0;
/** What the input is: a `FORMAT_…` code. */
export let format: u32 = 0;
export let delimiter: u32 = 0;
let shape: usize = 0;
/** Number of columns of the table; number of wanted columns, and their address, 4 bytes each. */
export let columnCount: u32 = 0;
export let wantedCount: u32 = 0;
export let wantedColumns: usize = 0;
/** For each field, the steps of its path from the first array on, see `STEPS_BYTES` and `STEP_…` in ../abi.ts. */
export let fieldSteps: usize = 0;
export let hasSteps: bool = false;
/** For each field, the keys of its target, likewise. */
export let fieldResultKeys: usize = 0;
export let hasInnerResults: bool = false;
export let isLenient: bool = false;
export let maxLenientBytes: usize = 0;

/** Marks a bucket in which one range holds all addresses: the other bits are its record. */
export const DECIDED: u32 = 0x8000_0000;

/** Reads the configuration at an address. */
export function readConfig(at: usize): void {
  start4 = load<u32>(at, CONFIG_START4);
  record4 = load<u32>(at, CONFIG_RECORD4);
  buckets4 = load<u32>(at, CONFIG_BUCKETS4);
  crowded4 = load<u32>(at, CONFIG_CROWDED4);
  count4 = load<u32>(at, CONFIG_COUNT4);
  levels6 = load<u32>(at, CONFIG_LEVELS6);
  levelCount6 = load<u32>(at, CONFIG_LEVEL_COUNT6);
  low6 = load<u32>(at, CONFIG_LOW6);
  record6 = load<u32>(at, CONFIG_RECORD6);
  count6 = load<u32>(at, CONFIG_COUNT6);
  outcomes = load<u32>(at, CONFIG_OUTCOMES);
  recordCount = load<u32>(at, CONFIG_RECORD_COUNT);
  fragments = load<u32>(at, CONFIG_FRAGMENTS);
  longestInsert = load<u32>(at, CONFIG_LONGEST_INSERT);
  fieldTargets = load<u32>(at, CONFIG_FIELD_TARGETS);
  fieldCount = load<u32>(at, CONFIG_FIELD_COUNT);
  keyTree = load<u32>(at, CONFIG_KEY_TREE);
  targetCount = load<u32>(at, CONFIG_TARGET_COUNT);
  longestKey = load<u32>(at, CONFIG_LONGEST_KEY);
  keyLengths = load<u64>(at, CONFIG_KEY_LENGTHS);
  policy = load<u32>(at, CONFIG_POLICY);
  keepsRejects = load<u32>(at, CONFIG_KEEPS_REJECTS) != 0;
  comparesAllKeys = load<u32>(at, CONFIG_COMPARES_ALL_KEYS) != 0;
  triesFlatPath = load<u32>(at, CONFIG_TRIES_FLAT_PATH) != 0;
  ipv4Forms = load<u32>(at, CONFIG_IPV4_FORMS);
  maxDepth = load<u32>(at, CONFIG_MAX_DEPTH);
  selected = load<u32>(at, CONFIG_SELECTED);
  passesOthers = load<u32>(at, CONFIG_PASSES_OTHERS) != 0;
  maxAddressLength = load<u32>(at, CONFIG_MAX_ADDRESS_LENGTH);
  format = load<u32>(at, CONFIG_FORMAT);
  delimiter = load<u32>(at, CONFIG_DELIMITER);
  shape = load<u32>(at, CONFIG_SHAPE);
  fieldSteps = load<u32>(at, CONFIG_FIELD_STEPS);
  hasSteps = load<u32>(at, CONFIG_HAS_STEPS) != 0;
  fieldResultKeys = load<u32>(at, CONFIG_FIELD_RESULT_KEYS);
  hasInnerResults = load<u32>(at, CONFIG_HAS_INNER_RESULTS) != 0;
  isLenient = load<u32>(at, CONFIG_LENIENT) != 0;
  maxLenientBytes = load<u32>(at, CONFIG_MAX_LENIENT_BYTES);
}

/** Reads the shape of the table, which is known when the first block is processed. */
export function readShape(): void {
  columnCount = load<u32>(shape, SHAPE_COLUMNS);
  wantedCount = load<u32>(shape, SHAPE_TARGET_COUNT);
  wantedColumns = shape + SHAPE_TARGETS;
}

/** Returns true once per memory: the caller must then make the lookup tables. */
export function claimTables(at: usize): bool {
  const made = load<u32>(at, CONFIG_TABLES_MADE);
  store<u32>(at, 1, CONFIG_TABLES_MADE);
  return made == 0;
}
