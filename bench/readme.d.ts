export function speedTable(results: {
  day: string;
  machine: string;
  parts: Record<string, { name: string; value: string }[]>;
}): string;
export function writeReadme(): void;
