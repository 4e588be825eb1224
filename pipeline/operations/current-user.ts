/** The current user, for the records of decisions that a person made. */
import { userInfo } from 'node:os';

/** Returns the name of the account; under sudo, that of the person who called it. */
export function currentUser(): string {
  if (process.env.SUDO_USER) return process.env.SUDO_USER;
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`; // an account without a name, which containers may have
  }
}
