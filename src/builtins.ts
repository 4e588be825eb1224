/** Modules of Node that take 2 to 6 ms to load, for code that does not need them in each run. */

export function crypto() {
  return process.getBuiltinModule('node:crypto');
}

export function net() {
  return process.getBuiltinModule('node:net');
}

export function tty() {
  return process.getBuiltinModule('node:tty');
}

/** Returns zlib where there is one: not in browsers. Without an import, no bundler looks for it. */
export function zlibIfAny() {
  return globalThis.process?.getBuiltinModule?.('zlib');
}

export function zlib() {
  return process.getBuiltinModule('node:zlib');
}
