/** The tree of keys that the kernel walks; assembly/keys.ts says how it lies in memory. */
import { AtlasError } from '../../errors.js';
import { MAX_FIELDS, MAX_KEY_BYTES, MAX_PATH_KEYS } from '../../limits.js';
import type { FieldRequest } from '../options.js';

const NODE_BYTES = 32;
const EDGE_BYTES = 24;
const QUOTE = 34;
/** Stands for this many bytes in a key and all above. */
const LONG = 63;

/** An object's place in the tree: the top of the line, or behind a key. */
interface Node {
  number: number;
  children: Map<string, Node>;
  isTarget: boolean;
  isAnswerName: boolean;
}

/** The tree, ready to be copied into the kernel's memory. */
export interface KeyTree {
  bytes: Uint8Array;
  targetCount: number;
  /** For each field the number of the target that its address stands at. */
  fieldTargets: number[];
  /** In bytes. */
  longestKey: number;
}

const encoder = new TextEncoder();

function checkFields(fields: readonly FieldRequest[]): void {
  if (fields.length > MAX_FIELDS) {
    throw new AtlasError('E_USAGE', `${fields.length} fields are too many; at most ${MAX_FIELDS} go in one run`);
  }
  for (const { path, name } of fields) {
    if (path.length > MAX_PATH_KEYS) {
      throw new AtlasError('E_USAGE', `the path ${path.join('.')} has more than ${MAX_PATH_KEYS} keys`);
    }
    for (const key of [...path, name]) {
      if (encoder.encode(key).length > MAX_KEY_BYTES) {
        throw new AtlasError('E_USAGE', `the key ${key.slice(0, 40)}… is longer than ${MAX_KEY_BYTES} bytes`);
      }
    }
  }
}

function plant(fields: readonly FieldRequest[]): { nodes: Node[]; ends: Node[] } {
  const nodes: Node[] = [];
  const grow = (): Node => {
    const node = { number: nodes.length, children: new Map<string, Node>(), isTarget: false, isAnswerName: false };
    nodes.push(node);
    return node;
  };
  const child = (node: Node, key: string): Node => {
    const next = node.children.get(key) ?? grow();
    node.children.set(key, next);
    return next;
  };
  const root = grow();
  const ends = fields.map(({ path, name }) => {
    child(root, name).isAnswerName = true;
    const end = path.reduce(child, root);
    end.isTarget = true;
    return end;
  });
  return { nodes, ends };
}

/**
 * Builds the tree of the keys that count: those on the way to a field, and the names that answers go to.
 *
 * @param at where in the kernel's memory the tree will lie; a multiple of 8
 * @throws AtlasError E_USAGE where there are more fields, or longer paths or keys, than the kernel takes
 */
export function buildKeyTree(fields: readonly FieldRequest[], at: number): KeyTree {
  checkFields(fields);
  const { nodes, ends } = plant(fields);
  const edgesAt = nodes.length * NODE_BYTES;
  const keysAt = edgesAt + (nodes.length - 1) * EDGE_BYTES;
  const keys = nodes.flatMap(({ children }) => [...children.keys()].map((key) => encoder.encode(key)));
  const bytes = new Uint8Array(keysAt + keys.reduce((sum, key) => sum + key.length, 0));
  const view = new DataView(bytes.buffer);

  let edge = edgesAt;
  let text = keysAt;
  for (const node of nodes) {
    const base = node.number * NODE_BYTES;
    let lengths = 0n;
    view.setUint32(base + 8, at + edge, true);
    view.setUint32(base + 12, node.children.size, true);
    for (const [key, { number }] of node.children) {
      const encoded = encoder.encode(key);
      // A quote or backslash is always escaped in JSON; such a key is for the long way, as a long one is.
      const length = /["\\]/.test(key) ? LONG : Math.min(encoded.length, LONG);
      lengths |= 1n << BigInt(length);
      const tail = [QUOTE, ...encoded].slice(-8);
      bytes.set(tail, edge + 8 - tail.length);
      bytes.fill(0xff, edge + 16 - tail.length, edge + 16);
      view.setUint32(edge + 16, at + text, true);
      view.setUint16(edge + 20, encoded.length, true);
      view.setUint16(edge + 22, number, true);
      bytes.set(encoded, text);
      text += encoded.length;
      edge += EDGE_BYTES;
    }
    view.setBigUint64(base, lengths, true);
    view.setUint32(base + 24, node.isTarget ? 1 : 0, true);
    view.setUint32(base + 28, node.isAnswerName ? 1 : 0, true);
  }

  // Targets are numbered from the top down, so that those at or below a node are neighbors.
  const numbers = new Map<Node, number>();
  const number = (node: Node): void => {
    view.setUint32(node.number * NODE_BYTES + 16, numbers.size, true);
    if (node.isTarget) numbers.set(node, numbers.size);
    for (const next of node.children.values()) number(next);
    view.setUint32(node.number * NODE_BYTES + 20, numbers.size, true);
  };
  number(nodes[0]!);
  return {
    bytes,
    targetCount: numbers.size,
    fieldTargets: ends.map((end) => numbers.get(end)!),
    longestKey: keys.reduce((longest, key) => Math.max(longest, key.length), 0),
  };
}
