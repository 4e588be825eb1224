/** Returns docs/programs.md, from programs/results.json. */
export function programsPage(results: unknown): string;
