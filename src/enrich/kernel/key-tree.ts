/** The tree of keys that count, which the kernel follows while it scans a line. */
import type { PathStep } from '../field-path.js';
import * as abi from './abi.js';

const QUOTE = 34;

/** An object of a line: the line itself, or the value of a key. */
interface Node {
  number: number;
  children: Map<string, Node>;
  isTarget: boolean;
  isResult: boolean;
}

/** The tree, ready to be copied into the kernel's memory. */
export interface KeyTree {
  bytes: Uint8Array;
  /** Number of targets: nodes whose value is an address, or the array with the address. */
  targetCount: number;
  /** For each path, its target. */
  fieldTargets: number[];
  /** Length of the longest key in bytes, those of steps and targets included. */
  longestKey: number;
  /** Lengths of the keys that the kernel recognizes by their length; bit n means n bytes. */
  keyLengths: bigint;
  /** Whether there are longer keys. */
  comparesAllKeys: boolean;
}

const encoder = new TextEncoder();

/** Returns the keys of a path up to its first array. */
function leadingKeys(path: readonly PathStep[]): string[] {
  const end = path.findIndex((step) => typeof step !== 'string');
  return (end < 0 ? path : path.slice(0, end)) as string[];
}

/** Returns the steps of a path from its first array on. */
export function stepsIntoArrays(path: readonly PathStep[]): PathStep[] {
  return path.slice(leadingKeys(path).length);
}

/** Returns all nodes, the root first, and the node that each path ends at. */
function makeNodes(
  paths: readonly (readonly PathStep[])[],
  resultPaths: readonly (readonly string[])[],
  replacesResults: boolean,
): { nodes: Node[]; ends: Node[] } {
  const nodes: Node[] = [];
  const add = (): Node => {
    const node = { number: nodes.length, children: new Map<string, Node>(), isTarget: false, isResult: false };
    nodes.push(node);
    return node;
  };
  const child = (node: Node, key: string): Node => {
    const next = node.children.get(key) ?? add();
    node.children.set(key, next);
    return next;
  };
  const root = add();
  for (const path of resultPaths) if (replacesResults && path.length === 1) child(root, path[0]!).isResult = true;
  const ends = paths.map((path) => {
    const end = leadingKeys(path).reduce(child, root);
    end.isTarget = true;
    return end;
  });
  return { nodes, ends };
}

/** Writes the nodes and edges in the format of abi.ts; returns them with the keys that the edges refer to. */
function encodeNodes(nodes: readonly Node[], at: number): Uint8Array {
  const edgesAt = nodes.length * abi.NODE_BYTES;
  const keysAt = edgesAt + (nodes.length - 1) * abi.EDGE_BYTES;
  const keyBytes = nodes
    .flatMap(({ children }) => [...children.keys()])
    .reduce((sum, key) => sum + encoder.encode(key).length, 0);
  const bytes = new Uint8Array(keysAt + keyBytes);
  const view = new DataView(bytes.buffer);
  let edge = edgesAt;
  let text = keysAt;
  for (const node of nodes) {
    const base = node.number * abi.NODE_BYTES;
    view.setUint32(base + abi.NODE_EDGES, at + edge, true);
    view.setUint32(base + abi.NODE_CHILD_COUNT, node.children.size, true);
    view.setUint32(base + abi.NODE_IS_TARGET, node.isTarget ? 1 : 0, true);
    view.setUint32(base + abi.NODE_IS_RESULT, node.isResult ? 1 : 0, true);
    for (const [key, { number }] of node.children) {
      const encoded = encoder.encode(key);
      const tail = [QUOTE, ...encoded].slice(-8);
      bytes.set(tail, edge + abi.EDGE_TAIL + 8 - tail.length);
      bytes.fill(0xff, edge + abi.EDGE_TAIL_MASK + 8 - tail.length, edge + abi.EDGE_TAIL_MASK + 8);
      view.setUint32(edge + abi.EDGE_KEY, at + text, true);
      view.setUint16(edge + abi.EDGE_KEY_LENGTH, encoded.length, true);
      view.setUint16(edge + abi.EDGE_CHILD, number, true);
      bytes.set(encoded, text);
      text += encoded.length;
      edge += abi.EDGE_BYTES;
    }
  }
  return bytes;
}

/** Numbers the targets from the root down, so that those at or below a node are consecutive; writes these ranges. */
function numberTargets(root: Node, bytes: Uint8Array): Map<Node, number> {
  const view = new DataView(bytes.buffer);
  const numbers = new Map<Node, number>();
  const visit = (node: Node): void => {
    const base = node.number * abi.NODE_BYTES;
    view.setUint32(base + abi.NODE_FIRST_TARGET, numbers.size, true);
    if (node.isTarget) numbers.set(node, numbers.size);
    for (const next of node.children.values()) visit(next);
    view.setUint32(base + abi.NODE_TARGETS_END, numbers.size, true);
  };
  visit(root);
  return numbers;
}

/**
 * Builds the tree of the keys that count: those of the paths to values, and the top-level keys that results are written to.
 *
 * @param at address of the tree in the kernel's memory; a multiple of 8
 * @param replacesResults whether top-level members with the key of a result are replaced as a whole
 */
export function buildKeyTree(
  paths: readonly (readonly PathStep[])[],
  resultPaths: readonly (readonly string[])[],
  at: number,
  replacesResults = true,
): KeyTree {
  const { nodes, ends } = makeNodes(paths, resultPaths, replacesResults);
  const bytes = encodeNodes(nodes, at);
  const numbers = numberTargets(nodes[0]!, bytes);
  const keys = nodes.flatMap(({ children }) => [...children.keys()]);
  const otherKeys = [...paths, ...resultPaths].flat().filter((step) => typeof step === 'string');
  const length = (key: string): number => encoder.encode(key).length;
  // JSON always escapes a quote or a backslash, and the kernel compares all keys with escapes.
  const recognized = keys.filter((key) => !/["\\]/.test(key) && length(key) <= abi.KEY_LENGTHS_MAX);
  return {
    bytes,
    targetCount: numbers.size,
    fieldTargets: ends.map((end) => numbers.get(end)!),
    longestKey: Math.max(...[...keys, ...otherKeys].map(length)),
    keyLengths: recognized.reduce((lengths, key) => lengths | (1n << BigInt(length(key))), 0n),
    comparesAllKeys: keys.some((key) => length(key) > abi.KEY_LENGTHS_MAX),
  };
}
