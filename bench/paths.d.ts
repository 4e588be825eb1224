export const CLI: string;
export const CSV_FILES: string[];
export const MMDB: string;
export function dataDirectory(only?: string): string;
