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

export function zlib() {
  return process.getBuiltinModule('node:zlib');
}
