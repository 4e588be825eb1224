/** The library for `require`, with CommonJS declarations for TypeScript with `module: node16`. */
// biome-ignore lint/suspicious/noTsIgnore: an expected error would be missing with `module: nodenext`
/** @ts-ignore TS1479: Node 20.19 and later can `require` an ECMAScript module. */
export * from './index.js';
