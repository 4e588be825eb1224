/** Returns node:crypto. It takes 6 ms to load, and a lookup in a release that was verified before does not need it. */
export function crypto() {
  return process.getBuiltinModule('node:crypto');
}
