/** The tree of the objects that results go into, if they do not all go to the top of the line. */
import type { Addable } from '../members.js';
import { schemaPath } from '../members.js';
import type { EnrichOptions } from '../options.js';
import * as abi from './abi.js';
import type { MemoryPlan } from './memory-plan.js';

/** What a field puts into an object: the members that are replaced, and the members of the result that are written as these. */
export interface Leaves {
  field: number;
  keys: string[];
  /** Undefined for the whole result. */
  add: Addable[] | undefined;
}

/** An object of the line; the line itself is the root, whose key is empty. */
export interface ResultNode {
  key: string;
  children: ResultNode[];
  leaves: Leaves[];
  /** The fields whose results go into it or into objects in it, one bit each. */
  fields: bigint;
  /** Whether a line in which it is not an object is not valid. */
  isRequired: boolean;
}

function newNode(key: string): ResultNode {
  return { key, children: [], leaves: [], fields: 0n, isRequired: false };
}

/** Returns the node that a path leads to; adds what is missing of the way. */
function nodeAt(root: ResultNode, path: readonly string[], field: number): ResultNode {
  let node = root;
  for (const key of path) {
    node.fields |= 1n << BigInt(field);
    let child = node.children.find((one) => one.key === key);
    if (child === undefined) {
      child = newNode(key);
      node.children.push(child);
    }
    node = child;
  }
  node.fields |= 1n << BigInt(field);
  return node;
}

/** Returns the tree for the results of fields. */
export function buildResultTree({ fields, add, schema }: EnrichOptions): ResultNode {
  const root = newNode('');
  fields.forEach(({ resultPath }, field) => {
    if (schema === undefined) {
      nodeAt(root, resultPath.slice(0, -1), field).leaves.push({ field, keys: [resultPath.at(-1)!], add: undefined });
      return;
    }
    resultPath.forEach((_, depth) => {
      nodeAt(root, resultPath.slice(0, depth + 1), field).isRequired = true;
    });
    for (const member of add) {
      const path = [...resultPath, ...schemaPath(schema, member)];
      const { leaves } = nodeAt(root, path.slice(0, -1), field);
      let own = leaves.find((one) => one.field === field);
      if (own === undefined) {
        own = { field, keys: [], add: [] };
        leaves.push(own);
      }
      own.keys.push(path.at(-1)!);
      own.add!.push(member);
    }
  });
  return root;
}

/** Returns the nodes of a tree, each before its children, which are consecutive. */
function nodesOf(root: ResultNode): ResultNode[] {
  const nodes = [root];
  for (const node of nodes) nodes.push(...node.children);
  return nodes;
}

/**
 * Places a tree in the form of `RESULT_…` in abi.ts.
 *
 * @param insertOf places what is inserted for leaves, and returns its address
 * @returns its address, the number of nodes, and the bytes that are put out for the keys of all objects at most
 */
export function placeResultTree(plan: MemoryPlan, root: ResultNode, insertOf: (leaves: Leaves) => number) {
  const nodes = nodesOf(root);
  const text = (value: string): [at: number, length: number] => {
    const bytes = Buffer.from(value);
    return [plan.place(bytes), bytes.length];
  };
  const keyText = ({ key }: ResultNode): string => `${JSON.stringify(key)}:{`;
  const leaves = nodes.map((node) =>
    node.leaves.flatMap((one) => {
      const insert = insertOf(one);
      return one.keys.map((key, index) => [...text(key), one.field, index === 0 ? insert : 0]);
    }),
  );
  const leafTables = leaves.map((table) => plan.place(Uint32Array.from(table.flat())));
  const keys = nodes.map(({ key }) => text(key));
  const texts = nodes.map((node) => text(keyText(node)));
  const results = plan.reserve(nodes.length * abi.RESULT_BYTES);
  const table = new Uint32Array((nodes.length * abi.RESULT_BYTES) / 4);
  nodes.forEach((node, index) => {
    const children = node.children.length === 0 ? 0 : nodes.indexOf(node.children[0]!);
    table.set(
      [
        ...keys[index]!,
        ...texts[index]!,
        results + children * abi.RESULT_BYTES,
        node.children.length,
        leafTables[index]!,
        leaves[index]!.length,
        Number(node.fields & 0xffff_ffffn),
        Number(node.fields >> 32n),
        Number(node.isRequired),
      ],
      (index * abi.RESULT_BYTES) / 4,
    );
  });
  plan.fill(results, table);
  const longest = nodes.reduce((sum, node) => sum + Buffer.byteLength(keyText(node)) + 2 + abi.LONGEST_INDENT, 0);
  return { results, count: nodes.length, longest };
}
